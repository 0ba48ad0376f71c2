// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, h] = softmax_j(scale * q[i, h] . k[j]) v[j] over the keys j of a paged cache that query token i sees, few rows a request.
// A request's rows, query tokens times heads of a group, are those of one m16n8k16 tile. As many blocks as are resident at once share
// all keys of all requests by their actual lengths: each takes an equal run of units in the order (request, KV head, tile of rows, key).
// Its warps take 16 keys each of a block tile, every warp through a ring of its own, so that the loop has no block barrier; they are merged
// in the order of warps when the block leaves an item. An item that was cut is merged from its parts by paged_combine.
#pragma once
#include "quern/kit/tanh.cuh"
#include "quern/ops/attention/hooks.cuh"
#include "quern/ops/attention/paged/split_kv/tile.cuh"

namespace quern::attention {

/// What a lane holds of its warp's sums.
template <SplitKvConfig C> struct WarpSums {
  SoftmaxState rows[2];  // rows lane / 4 and + 8; each lane has the sum of its own columns
  f32 out[C.head_dim / 8][4];
};

/// A logit in units of log2 from q . k. `scale`: in natural units.
template <SplitKvConfig C, class H>
QN_DEVICE f32 logit_of(const SplitKvParams& p, f32 product, f32 scale, const HookContext& at) {
  if constexpr (!C.soft_cap && !has_logit<H>) {
    return product * (scale * f32(kLog2E));
  } else {
    f32 x = product * scale;
    if constexpr (C.soft_cap != 0) x = f32(p.soft_cap) * accurate_tanh(x);
    return hooked_logit<H>(x, at) * f32(kLog2E);
  }
}

/// Products become logits; what is not visible becomes -inf. `first` is the tile's token 0.
template <SplitKvConfig C, class H>
QN_DEVICE void make_logits(const SplitKvParams& p, const Segment& s, i32 first, f32 (&x)[2][4]) {
  const i32 lane = i32(ptx::lane_id());
  QN_UNROLL
  for (int half = 0; half < C.group_rows / 8; ++half) {
    const RowPlace place =
        row_place<C>(p, s.head_kv, s.head_tile, min_of(lane / 4 + 8 * half, s.rows - 1));  // rows beyond the last: the last one's
    Span span{0, s.end - 1};
    if constexpr (C.several != 0) span = visible_span(p, s.queries, s.keys, place.query);
    f32 scale = p.scale;
    if constexpr (C.scales != 0)
      scale = scale * scale_at(p.k_scale, s.request, s.head_kv) * scale_at(p.q_scale, s.queries.begin + place.query, place.head_q);
    QN_UNROLL
    for (int n = 0; n < 2; ++n) {
      QN_UNROLL
      for (int e = 0; e < 2; ++e) {
        const i32 key = first + 8 * n + 2 * (lane % 4) + e;
        const HookContext at{.request = i32(s.request),
                             .query_token = i32(s.queries.begin) + place.query,
                             .head_q = place.head_q,
                             .head_kv = s.head_kv,
                             .query_position = s.keys.length - s.queries.count + place.query,
                             .key_position = key,
                             .seq_len = s.keys.length,
                             .params = p.hook_params,
                             .tensors = p.hook_tensors,
                             .query_index = place.query,
                             .query_len = s.queries.count};
        bool visible = key < s.end;
        if constexpr (C.several != 0) visible = visible && key >= span.first && key <= span.last;
        if constexpr (C.bits != 0) visible = visible && bit_visible(p, s.request, s.keys.length, place.query, key);
        visible = visible && hooked_visible<H>(at);
        f32& logit = x[n][2 * half + e];
        logit = visible ? logit_of<C, H>(p, logit, scale, at) : negative_infinity();
      }
    }
  }
}

/// Online softmax over a tile: logits become probabilities (packed as the A operand), sums move to the new maximum.
template <SplitKvConfig C>
QN_DEVICE void add_probabilities(const f32 (&x)[2][4], WarpSums<C>& sums, u32 (&packed)[4]) {
  using T = dtype_t<C.dtype>;
  QN_UNROLL
  for (int r = 0; r < 2; ++r) {
    if (r * 8 >= C.group_rows) {
      packed[r] = packed[2 + r] = 0;
      continue;
    }
    const f32 tile_max = warp_max<4>(ptx::fmax(ptx::fmax(x[0][2 * r], x[0][2 * r + 1]), ptx::fmax(x[1][2 * r], x[1][2 * r + 1])));
    SoftmaxState& state = sums.rows[r];
    const f32 factor = raise_max(state, tile_max);
    const f32 base = state.max == negative_infinity() ? f32(0.f) : state.max;
    QN_UNROLL
    for (int n = 0; n < 2; ++n) {
      const f32 low = probability_of<C.dtype>(x[n][2 * r], base), high = probability_of<C.dtype>(x[n][2 * r + 1], base);
      state.sum = state.sum + low + high;
      packed[2 * n + r] = pack_word(low, high, T{});
    }
    QN_UNROLL
    for (int j = 0; j < C.head_dim / 8; ++j) {
      sums.out[j][2 * r] = sums.out[j][2 * r] * factor;
      sums.out[j][2 * r + 1] = sums.out[j][2 * r + 1] * factor;
    }
  }
}

/// One pass of the warp over its tiles of a segment.
template <SplitKvConfig C, class H>
QN_DEVICE void sum_segment(const SplitKvParams& p, const Segment& s, u8* smem, WarpSums<C>& sums) {
  constexpr i32 kTile = C.threads / 32 * kWarpTokens;
  constexpr auto S = split_kv_smem(C);
  u8* ring = smem + S.ring + threadIdx.x / 32 * S.warp_ring;
  TokenSource from;
  from.pages = s.keys.pages;
  from.k = p.k + i64(s.head_kv) * p.k_head;
  from.v = p.v + i64(s.head_kv) * p.v_head;
  from.end = s.end;
  const i32 first = s.begin + i32(threadIdx.x / 32) * kWarpTokens;
  const i32 tiles = ceil_div(s.end - s.begin, kTile);
  TilePages pages = find_pages(p, from, first);
  store_queries<C>(p, s, smem + S.queries);
  ptx::sync_block();
  Queries<C> q;
  q.tile = ptx::smem_address(smem + S.queries);
  if constexpr (Queries<C>::kKept) {
    QN_UNROLL
    for (int step = 0; step < C.head_dim / 16; ++step) load_queries<C>(q.tile, step, q.kept[step]);
  }
  sums.rows[0] = sums.rows[1] = empty_softmax();
  for (auto& column : sums.out)
    for (f32& value : column) value = 0.f;
  // Iteration i refills the stage that iteration i - 1 consumed and looks one tile further for pages; the first stages - 1
  // only fill.
  int consumed = 0, filled = 0;
  TileOnItsWay<C> coming;
  constexpr bool kTogether = TileOnItsWay<C>::kParts == 2;  // else V of a tile is read when its K has come
  for (i32 i = 1 - C.stages; i < tiles; ++i) {
    if (i >= 0) {
      ptx::cp_async_wait<C.stages - 2>();
      ptx::sync_warp();
    }
    const i32 next = i + C.stages - 1;
    const TilePages of_next = pages;
    u8* const to = ring + filled * S.stage;
    if (next < tiles) {
      copy_part<C, 0>(p, from, of_next, first + next * kTile, to, coming);
      if constexpr (kTogether) copy_part<C, 1>(p, from, of_next, first + next * kTile, to, coming);
    }
    ptx::cp_async_commit();
    filled = filled + 1 == C.stages ? 0 : filled + 1;
    if (next + 1 < tiles) pages = find_pages(p, from, first + (next + 1) * kTile);
    const auto end_keys = [&] {
      store_part<C, 0>(to, coming);
      if constexpr (!kTogether) copy_part<C, 1>(p, from, of_next, first + next * kTile, to, coming);
    };
    if (i < 0) {
      if (next < tiles) end_keys(), store_part<C, 1>(to, coming);
      continue;
    }
    const u32 tile = ptx::smem_address(ring + consumed * S.stage);
    consumed = consumed + 1 == C.stages ? 0 : consumed + 1;
    f32 x[2][4] = {};
    multiply_keys<C>(q, tile, x);
    if (!kTogether && next < tiles) end_keys();
    make_logits<C, H>(p, s, first + i * kTile, x);
    u32 probabilities[4];
    add_probabilities<C>(x, sums, probabilities);
    multiply_values<C>(probabilities, tile + S.stage / 2, sums.out);
    if (kTogether && next < tiles) end_keys();
    if (next < tiles) store_part<C, 1>(to, coming);
  }
  ptx::sync_warp();
}

/// The warps' sums meet in shared memory, in the rings; the part or the output is written.
template <SplitKvConfig C>
QN_DEVICE void merge_warps(const SplitKvParams& p, const Segment& s, u8* smem, WarpSums<C>& sums) {
  constexpr auto S = split_kv_smem(C);
  constexpr int kWarps = C.threads / 32, kPitch = C.head_dim + 8, kPairs = C.head_dim / 2;
  static_assert(C.group_rows * kPitch * 4 <= S.warp_ring);
  const i32 rows = s.rows, lane = i32(ptx::lane_id()), warp = i32(threadIdx.x / 32);
  SoftmaxState* states = reinterpret_cast<SoftmaxState*>(smem + S.states);
  QN_UNROLL
  for (int r = 0; r < C.group_rows / 8; ++r) {
    const i32 row = lane / 4 + 8 * r;
    const f32 sum = warp_sum<4>(sums.rows[r].sum);
    if (row >= rows) continue;
    if (lane % 4 == 0) states[warp * 16 + row] = {sums.rows[r].max, sum};
    f32* to = reinterpret_cast<f32*>(smem + S.ring + warp * S.warp_ring) + row * kPitch + 2 * (lane % 4);
    QN_UNROLL
    for (int j = 0; j < C.head_dim / 8; ++j)
      ptx::st_shared<u32x2>(to + 8 * j, {ptx::bits_of(sums.out[j][2 * r]), ptx::bits_of(sums.out[j][2 * r + 1])});
  }
  ptx::sync_block();
  QN_NO_UNROLL
  for (i32 i = i32(threadIdx.x); i < rows * kPairs; i += C.threads) {
    const i32 row = i / kPairs, column = i % kPairs * 2;
    SoftmaxState all = empty_softmax();
    for (int w = 0; w < kWarps; ++w) all.max = ptx::fmax(all.max, states[w * 16 + row].max);
    f32 low = 0.f, high = 0.f;
    QN_UNROLL
    for (int w = 0; w < kWarps; ++w) {
      const SoftmaxState state = states[w * 16 + row];
      const f32 weight = softmax_weight(state.max, all.max);
      const u32x2 pair = ptx::ld_shared<u32x2>(reinterpret_cast<f32*>(smem + S.ring + w * S.warp_ring) + row * kPitch + column);
      all.sum = ptx::fma(state.sum, weight, all.sum);
      low = ptx::fma(ptx::f32_of_bits(pair.x), weight, low);
      high = ptx::fma(ptx::f32_of_bits(pair.y), weight, high);
    }
    if (s.slot < 0) {
      const RowPlace place = row_place<C>(p, s.head_kv, s.head_tile, row);
      const i64 token = s.queries.begin + place.query;
      const Finish finish = finish_row(p, all, place.head_q, sum_shift_of<C.dtype>());
      const f32 factor = finish.factor * result_factor(p, s.request, s.head_kv);
      store_pair(out_row<C>(p, token, place.head_q) + column, finished(finish, low, factor), finished(finish, high, factor),
                 p.out_pairs != 0);
      if (column == 0 && p.out_lse) store_lse(p, token, place.head_q, finish.lse);
    } else {
      const Finish finish = finish_state(all, 1.f, sum_shift_of<C.dtype>());
      const i64 at = s.slot * C.group_rows + row;
      ptx::st_global<u32x2>(p.part_out + at * C.head_dim + column,
                            {ptx::bits_of(finished(finish, low, finish.factor)), ptx::bits_of(finished(finish, high, finish.factor))});
      if (column == 0) ptx::st_global<f32>(p.part_lse + at, finish.lse);
    }
  }
  ptx::sync_block();  // the rings are filled again after this
}

/// Units of one item of a request.
template <SplitKvConfig C> QN_DEVICE i32 request_units(const SplitKvParams& p, const Request& r) {
  return units_of < C.fixed_chunks != 0 > (visible_keys<C>(p, r), C.threads / 32 * kWarpTokens);
}

/// Units of one item of every request together. Lengths are read by all blocks alike, 4 bytes a request.
template <SplitKvConfig C> QN_DEVICE u32 count_units(const SplitKvParams& p, u32* scratch) {
  u32 mine = 0, total;
  QN_NO_UNROLL
  for (i64 index = threadIdx.x; index < p.batch; index += C.threads) mine += u32(request_units<C>(p, request_of<C>(p, index)));
  block_prefix_sum<C.threads>(mine, scratch, total);
  return total;
}

/// The request that unit `target` (< the total) belongs to, and the units of the requests before it.
template <SplitKvConfig C> QN_DEVICE i64 find_request(const SplitKvParams& p, u32 target, u32* scratch, u32& before) {
  u32* found = scratch + 8;
  u32 base = 0;
  for (i64 first = 0;; first += C.threads) {
    const i64 index = first + threadIdx.x;
    const u32 units = index < p.batch ? u32(request_units<C>(p, request_of<C>(p, index))) : 0;
    u32 total;
    const u32 end = base + block_prefix_sum<C.threads>(units, scratch, total);
    if (target < base + total) {
      if (end - units <= target && target < end) found[0] = u32(threadIdx.x), found[1] = end - units;
      ptx::sync_block();
      before = found[1];
      return first + found[0];
    }
    base += total;
  }
}

/// Tells the combine of a cut item: block b is the second that has a part of it.
QN_DEVICE void write_leader(const SplitKvParams& p, i32 request, i32 item, i32 first, i32 last) {
  if (threadIdx.x == 0) ptx::st_global<u32x4>(p.leaders + 4 * i64(blockIdx.x), {u32(request), u32(item), u32(first), u32(last)});
}

template <SplitKvConfig C, class H> QN_DEVICE void paged_split_kv(const SplitKvParams& p) {
  constexpr auto S = split_kv_smem(C);
  constexpr i32 kTile = C.threads / 32 * kWarpTokens;
  QN_SMEM(smem);
  u32* scratch = reinterpret_cast<u32*>(smem + S.scan);
  ptx::grid_launch_dependents();
  fetch_tables<C>(p);
  ptx::grid_dependency_wait();
  // This block's units: [at, end)
  const i32 items = p.heads_kv * p.head_tiles;
  const i64 total = i64(count_units<C>(p, scratch)) * items;
  write_blind_rows<C, C.threads>(p);
  const i64 share = max_of<i64>(p.min_share, ceil_div<i64>(total, gridDim.x));
  i64 at = min_of<i64>(total, i64(blockIdx.x) * share);
  const i64 end = min_of<i64>(total, at + share);
  bool led = false;
  if (at < end) {
    u32 before;
    i64 index = find_request<C>(p, u32(at / items), scratch, before);
    i64 request_begin = i64(before) * items;
    while (at < end) {
      // The item that `at` lies in
      const Request r = request_of<C>(p, index);
      const i32 units = request_units<C>(p, r);
      if (at >= request_begin + i64(units) * items) {
        request_begin += i64(units) * items;
        ++index;
        continue;
      }
      const i32 item = i32((at - request_begin) / units), unit = i32((at - request_begin) % units);
      const i64 item_begin = at - unit, item_end = item_begin + units;
      Segment s{index, -1, item / p.head_tiles, item % p.head_tiles, 0, 0, 0, r.queries, r.keys};
      s.rows = item_rows<C>(p, r.queries.count, s.head_tile);
      i32 taken;
      if constexpr (C.fixed_chunks != 0) {
        taken = 1;
        const i32 chunk = chunk_tokens(r.keys.end - r.first);
        s.begin = r.first + unit * chunk, s.end = min_of(r.keys.end, s.begin + chunk);
        if (units > 1) s.slot = (index * items + item) * p.max_splits + unit;
      } else {
        taken = i32(min_of<i64>(units - unit, end - at));
        s.begin = r.first + unit * kTile, s.end = min_of(r.keys.end, s.begin + taken * kTile);
        if (unit > 0) s.slot = 2 * i64(blockIdx.x);
        else if (item_end > end) s.slot = 2 * i64(blockIdx.x) + 1;
        if (unit > 0 && i64(blockIdx.x - 1) * share <= item_begin) {
          write_leader(p, i32(index), item, i32(blockIdx.x) - 1, i32((item_end - 1) / share));
          led = true;
        }
      }
      WarpSums<C> sums;
      sum_segment<C, H>(p, s, smem, sums);
      merge_warps<C>(p, s, smem, sums);
      at += taken;
    }
  }
  if constexpr (C.fixed_chunks == 0) {
    if (!led) write_leader(p, -1, 0, 0, 0);
  }
}

}  // namespace quern::attention
