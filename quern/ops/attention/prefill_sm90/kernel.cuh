// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, h] = softmax_j(scale * q[i, h] . k[j]) v[j] over the keys j that query token i sees, many rows a request, on Hopper.
// Rows are those of prefill_mma. A block stays on its multiprocessor and takes items one after another: a row tile with all or a part of
// its keys (tiles.cuh). Warps of the first warpgroup load (load.cuh): keys and values come through a ring each, ahead of the products, over
// the end of an item too. The other warpgroups have 64 rows each, and walk over the tile's keys in ascending order with online softmax:
// while the keys of a tile are multiplied, so are the values of the one before; while probabilities are made of the former, the latter goes
// on; and while one warpgroup makes probabilities, another multiplies. Where keys are not cut into parts, the sums of a row depend on its
// own request alone.
#pragma once
#include "quern/kit/wgmma_ring.cuh"
#include "quern/ops/attention/prefill/store_rows.cuh"
#include "quern/ops/attention/prefill_sm90/load.cuh"
#include "quern/ops/attention/prefill_sm90/parts.cuh"

namespace quern::attention {

/// Named barriers: warpgroup w waits at kTurnBarrier + w for its turn.
constexpr int kTurnBarrier = 9;

template <PrefillSm90Config C> QN_DEVICE void await_turn(u32 warpgroup) {
  if constexpr (C.turns != 0) ptx::bar_sync(kTurnBarrier + int(warpgroup), 2 * kWarpgroupSize);
}
template <PrefillSm90Config C> QN_DEVICE void pass_turn(u32 warpgroup) {
  if constexpr (C.turns != 0)
    ptx::bar_arrive(kTurnBarrier + int(warpgroup + 1 == u32(C.warpgroups) ? 0 : warpgroup + 1), 2 * kWarpgroupSize);
}

/// An address that the compiler computes with anew: descriptors of 16 steps, kept over a loop, are 32 registers.
template <PrefillSm90Config C> QN_DEVICE u32 renewed(u32 address) {
  u32 one[1] = {address};
  if constexpr (C.head_dim > 128 || C.warpgroups > 2) ptx::wgmma_hold(one);
  return one[0];
}

/// Issues x = q k^T of a warpgroup's rows and a tile's keys. The caller commits.
template <PrefillSm90Config C> QN_DEVICE void issue_keys(u32 queries, u32 keys, Logits<C>& x) {
  using T = dtype_t<C.dtype>;
  constexpr paged::BoxTile kQ = query_tile(C), kK = key_tile(C);
  constexpr u32 kAtom = 8 * u32(column_bytes(kQ));
  const auto q = k_major_descriptor(queries, swizzle_of(kQ), kAtom), k = k_major_descriptor(keys, swizzle_of(kK), kAtom);
  auto& sums = reinterpret_cast<f32(&)[C.tile_tokens / 2]>(x);
  QN_UNROLL
  for (u32 step = 0; step < u32(C.head_dim / 16); ++step)
    ptx::wgmma<T>(sums, q.advanced(offset_in_tile(kQ, 0, 32 * step)), k.advanced(offset_in_tile(kK, 0, 32 * step)), step > 0);
}

/// Issues out += p v of a tile. The caller commits.
template <PrefillSm90Config C> QN_DEVICE void issue_values(u32 (&packed)[C.tile_tokens / 16][4], u32 values, WarpRows<C>& rows) {
  using T = dtype_t<C.dtype>;
  constexpr paged::BoxTile kV = value_tile(C);
  constexpr u32 kWidth = u32(column_bytes(kV));
  const auto v = mn_major_descriptor(values, swizzle_of(kV), kWidth * u32(C.tile_tokens), 8 * kWidth);
  auto& sums = reinterpret_cast<f32(&)[C.head_dim_v / 2]>(rows.out);
  QN_UNROLL
  for (u32 step = 0; step < u32(C.tile_tokens / 16); ++step)
    ptx::wgmma<T, T, WgmmaForm{.b = Major::mn}>(sums, packed[step], v.advanced(16 * kWidth * step), true);
}

template <PrefillSm90Config C> QN_DEVICE void hold_logits(Logits<C>& x) { ptx::wgmma_hold(reinterpret_cast<f32(&)[C.tile_tokens / 2]>(x)); }
template <PrefillSm90Config C> QN_DEVICE void hold_sums(WarpRows<C>& rows) {
  ptx::wgmma_hold(reinterpret_cast<f32(&)[C.head_dim_v / 2]>(rows.out));
}

/// Probabilities as the A operand. Until the products have ended they belong to the instructions.
template <PrefillSm90Config C> QN_DEVICE void pack_tile(const Logits<C>& x, u32 (&packed)[C.tile_tokens / 16][4]) {
  QN_UNROLL
  for (int step = 0; step < C.tile_tokens / 16; ++step) {
    u32 words[1][4];
    pack_probabilities<C>(x, step, words);
    QN_UNROLL
    for (int i = 0; i < 4; ++i) packed[step][i] = words[0][i];
  }
}

/// A warpgroup's walk over the keys of its rows. What is not needed for each tile of keys is read from shared memory again: registers are
/// short.
template <PrefillSm90Config C> struct Walk {
  u8* memory;  // where smem is
  u32 smem, warpgroup;
  const u8* told;  // the item
  RowFactors<C> factors;
  Consumer<C.stages> keys, values;
};

/// By a warpgroup: its rows of q, which are bf16, become f16 in their places. Each is divided by its f16_range_of; `factors` are these
/// ranges, of the lane's rows. 8 lanes take a row, a warp four of its 16 at a time.
template <PrefillSm90Config C> QN_DEVICE void widen_queries(u8* queries, RowFactors<C>& factors) {
  constexpr paged::BoxTile T = query_tile(C);
  constexpr u32 kChunks = u32(C.head_dim) / 8, kPasses = ceil_div(kChunks, 8u);
  const u32 lane = ptx::lane_id(), tile = ptx::smem_address(queries);
  f32 of_four[4];
  QN_UNROLL
  for (u32 four = 0; four < 4; ++four) {
    const u32 row = 16 * warp_of_warpgroup() + 4 * four + lane / 8;
    const auto place = [&](u32 pass) { return queries + (paged::place_in_tile<T>(tile, row, 16 * (lane % 8 + 8 * pass)) - tile); };
    const auto has = [&](u32 pass) { return kChunks % 8 == 0 || lane % 8 + 8 * pass < kChunks; };
    f32 most = 0.f;
    u32x4 chunks[kPasses];
    QN_UNROLL
    for (u32 pass = 0; pass < kPasses; ++pass) {
      chunks[pass] = {0, 0, 0, 0};
      if (has(pass)) chunks[pass] = ptx::ld_shared<u32x4>(place(pass));
      QN_UNROLL
      for (int i = 0; i < 4; ++i) {
        f32 pair[2];
        unpack_word(word(chunks[pass], i), pair, bf16{});
        most = ptx::fmax(most, ptx::fmax(ptx::fabs(pair[0]), ptx::fabs(pair[1])));
      }
    }
    QN_UNROLL
    for (int bits = 1; bits < 8; bits *= 2) most = ptx::fmax(most, ptx::shfl_xor(most, bits));
    of_four[four] = 1.f;
    if constexpr (kIsFloat<f32>) of_four[four] = f16_range_of(most);  // other numbers are not rounded
    const f32 by = ptx::div(f32(1.f), of_four[four]);
    QN_UNROLL
    for (u32 pass = 0; pass < kPasses; ++pass) {
      QN_UNROLL
      for (int i = 0; i < 4; ++i) {
        f32 pair[2];
        unpack_word(word(chunks[pass], i), pair, bf16{});
        word(chunks[pass], i) = pack_word(pair[0] * by, pair[1] * by, f16{});
      }
      if (has(pass)) ptx::st_shared(place(pass), chunks[pass]);
    }
  }
  QN_UNROLL
  for (int half = 0; half < 2; ++half) {  // row lane / 4 + 8 half
    const int from = int(lane / 4 % 4 * 8);
    const f32 low = ptx::shfl(of_four[2 * half], from), high = ptx::shfl(of_four[2 * half + 1], from);
    factors.of_rows[0][half] = lane / 16 == 0 ? low : high;
  }
  ptx::fence_proxy_async_shared();  // of queries that became f16
  sync_warpgroup();
}

template <PrefillSm90Config C> QN_DEVICE void release_queries(u32 smem) {
  ptx::sync_warp();
  if (ptx::lane_id() == 0) ptx::mbarrier_arrive(queries_free<C>(smem));
}

/// Waits for the stage of keys or of values. Its copies row by row are writes of the generic proxy, which wgmma sees behind a fence.
template <PrefillSm90Config C> QN_DEVICE void begin_products(const Consumer<C.stages>& stage) {
  begin_read(stage);
  if constexpr (C.gather != 0 && !has_fp8_keys(C)) ptx::fence_proxy_async_shared();
}

/// By a warpgroup without rows in the tile: stages of keys from `first` to `end` pass.
template <PrefillSm90Config C, class H> QN_DEVICE void pass_keys(const PrefillSm90Params& p, Walk<C>& walk, i32 first, i32 end,
                                                                 u32 queries_parity) {
  ptx::mbarrier_wait(queries_full<C>(walk.smem), queries_parity);
  QN_NO_UNROLL
  for (; first < end; first = tile_behind<C, H>(p, walk.told, first)) {
    await_turn<C>(walk.warpgroup);
    begin_read(walk.keys);
    end_read(walk.keys);
    pass_turn<C>(walk.warpgroup);
    begin_read(walk.values);
    end_read(walk.values);
  }
  release_queries<C>(walk.smem);
}

/// Products of the tile of keys from `first` on become probabilities.
template <PrefillSm90Config C, class H>
QN_DEVICE void make_tile(const PrefillSm90Params& p, const Walk<C>& walk, const Span& seen, i32 first, WarpRows<C>& rows, Logits<C>& x,
                         f32 (&factors)[1][2]) {
  const bool late = scales_late<C, H>(p);
  if (!late || tests_keys<C, H>(seen, first)) {
    const RowTile mine = rows_of_warpgroup(p, walk.told, walk.warpgroup);
    const bool masked = tests_keys<C, H>(seen, first) && !hook_sees_all<C, H>(p, mine, seen, first);
    make_logits<C, H>(p, mine, 16 * warp_of_warpgroup() + ptx::lane_id() / 4, first, masked, late, walk.factors, x);
  }
  make_probabilities<C>(x, late ? f32(p.scale) * f32(kLog2E) : f32(1.f), late, walk.factors, rows.states, factors);
}

/// By a warpgroup whose rows all see the keys `seen`: sums over the keys from `first` to `end`, one tile at least. In a turn the keys of a
/// tile are multiplied and the values of the one before.
template <PrefillSm90Config C, class H>
QN_DEVICE void sum_keys(const PrefillSm90Params& p, Walk<C>& walk, const Span& seen, i32 first, i32 end, u32 queries_parity,
                        WarpRows<C>& rows) {
  const u32 queries = place_of_queries<C>(walk.smem, walk.warpgroup);
  Logits<C> x = {};
  u32 packed[C.tile_tokens / 16][4] = {};
  ptx::mbarrier_wait(queries_full<C>(walk.smem), queries_parity);
  if constexpr (has_row_factors(C)) widen_queries<C>(walk.memory + (queries - walk.smem), walk.factors);
  bool has_packed = false;  // probabilities of a tile before
  QN_NO_UNROLL
  do {
    await_turn<C>(walk.warpgroup);
    begin_products<C>(walk.keys);
    hold_logits<C>(x);
    hold_sums<C>(rows);
    ptx::wgmma_fence();
    issue_keys<C>(renewed<C>(queries), place_of_keys<C>(walk.smem, walk.keys.stage), x);
    ptx::wgmma_commit();
    if (has_packed) begin_products<C>(walk.values), issue_values<C>(packed, place_of_values<C>(walk.smem, walk.values.stage), rows);
    ptx::wgmma_commit();  // a group in any case: the wait for all but one is one for the keys
    pass_turn<C>(walk.warpgroup);
    ptx::wgmma_wait<1>();
    hold_logits<C>(x);
    end_read(walk.keys);
    f32 factors[1][2];
    make_tile<C, H>(p, walk, seen, first, rows, x, factors);
    ptx::wgmma_wait<0>();
    hold_sums<C>(rows);
    if (has_packed) end_read(walk.values);
    has_packed = true;
    scale_sums<C>(factors, rows);
    pack_tile<C>(x, packed);
    first = tile_behind<C, H>(p, walk.told, first);
  } while (first < end);
  release_queries<C>(walk.smem);
  begin_products<C>(walk.values);
  hold_sums<C>(rows);
  ptx::wgmma_fence();
  issue_values<C>(packed, place_of_values<C>(walk.smem, walk.values.stage), rows);
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
  hold_sums<C>(rows);
  end_read(walk.values);
}

/// The sums of an item become outputs, or are written for the last one of its parts, whose warp makes the outputs.
template <PrefillSm90Config C> QN_DEVICE void finish_item(const PrefillSm90Params& p, const Walk<C>& walk, WarpRows<C>& rows) {
  const u32 row = 16 * warp_of_warpgroup() + ptx::lane_id() / 4;
  if constexpr (C.parts != 0) {
    const Item item = told_item(p, walk.told);
    if (item.parts > 1) {
      const u32 warp = 4 * walk.warpgroup + warp_of_warpgroup();
      if (!write_part<C>(p, item, warp, rows)) return;
      if constexpr (C.head_dim_v > 128) {
        WarpRows<C> all;  // a variable of its own: `rows`, as what comes from either branch, spilled
        add_parts<C>(p, item, warp, all);
        return store_rows<C>(p, rows_of_warpgroup(p, walk.told, walk.warpgroup), row, 0, all);
      } else {
        add_parts<C>(p, item, warp, rows);
      }
    }
  }
  store_rows<C>(p, rows_of_warpgroup(p, walk.told, walk.warpgroup), row, 0, rows);
}

/// By a warpgroup that multiplies.
template <PrefillSm90Config C, class H> QN_DEVICE void multiply_tiles(const PrefillSm90Params& p, u8* memory, u32 smem, u32 warpgroup) {
  Walk<C> walk{memory, smem, warpgroup, memory, {}, {key_ring<C>(smem)}, {value_ring<C>(smem)}};
  Consumer<kToldItems> told{item_ring<C>(smem)};
  u32 queries_parity = 0;
  if (warpgroup + 1 == u32(C.warpgroups)) pass_turn<C>(warpgroup);
  for (;;) {
    begin_read(told);
    walk.told = told_words<C>(memory, told.stage);
    i32 first, end, rows_here;
    Span seen;
    {
      const RowTile tile = told_tile(p, walk.told);
      if (tile.rows <= 0) break;
      const RowTile mine = rows_of_warpgroup(p, walk.told, warpgroup);
      first = first_tile<C, H>(p, tile), end = tile.end, rows_here = mine.rows;
      seen = seen_by_all(p, mine);
    }
    if (rows_here > 0) {
      WarpRows<C> rows;
      clear_rows<C>(rows);
      if (first < end) sum_keys<C, H>(p, walk, seen, first, end, queries_parity, rows);
      finish_item<C>(p, walk, rows);
    } else if (first < end) {
      pass_keys<C, H>(p, walk, first, end, queries_parity);
    }
    if (first < end) queries_parity ^= 1;
    end_read(told);
  }
  if (warpgroup == 0) await_turn<C>(warpgroup);  // the last warpgroup's pass
}

/// Registers of a thread. A block starts with an equal share for each: 168 of 384 threads, 128 of 512. The warpgroup that loads gives up
/// some of its, and those that multiply share them. Gathering rows takes over 56, at which the loops of head_dim 96 to 256 would spill, and
/// those of FP8.
template <PrefillSm90Config C> constexpr int kLoadingRegisters = C.warpgroups != 2 ? has_fp8_keys(C) ? 80 : 56
                                                                 : has_fp8_keys(C) ? 88
                                                                 : C.gather != 0   ? 72
                                                                                   : 56;
template <PrefillSm90Config C> constexpr int kMultiplyingRegisters = C.warpgroups != 2 ? has_fp8_keys(C) ? 144 : 152
                                                                     : has_fp8_keys(C) ? 208
                                                                     : C.gather != 0   ? 216
                                                                                       : 224;

template <PrefillSm90Config C, class H> QN_DEVICE void prefill_sm90(const PrefillSm90Params& p) {
  static_assert(C.threads == kWarpgroupSize * (1 + C.warpgroups));
  static_assert(kLoadingRegisters<C> + C.warpgroups * kMultiplyingRegisters<C> <= (1 + C.warpgroups) * (65536 / C.threads / 8 * 8),
                "a warpgroup would wait for registers that none gives up");
  QN_SMEM(memory);
  const u32 smem = ptx::smem_address(memory);
  if (threadIdx.x == 0) {
    if constexpr (C.query_boxes != 0) ptx::prefetch_tensormap(&p.queries);
    if constexpr (C.gather == 0) {
      ptx::prefetch_tensormap(&p.boxes.k);
      ptx::prefetch_tensormap(&p.boxes.v);
    }
    pipeline_init<C.stages>(key_ring<C>(smem), 4 * C.warpgroups, arrivals_of_stage(C));
    pipeline_init<C.stages>(value_ring<C>(smem), 4 * C.warpgroups, arrivals_of_stage(C));
    pipeline_init<kToldItems>(item_ring<C>(smem), 4 * C.warpgroups + 3);  // all warps but the one that tells
    ptx::mbarrier_init(queries_full<C>(smem), 1);
    ptx::mbarrier_init(queries_free<C>(smem), 4 * C.warpgroups);
    ptx::mbarrier_init(edge_barrier<C>(smem), 1);
    ptx::fence_mbarrier_init();
  }
  ptx::sync_block();
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  const u32 warpgroup = ptx::shfl(warpgroup_id(), 0), warp = ptx::shfl(ptx::warp_id(), 0);
  if (warpgroup == 0) {
    ptx::decrease_registers<kLoadingRegisters<C>>();
    if (warp == 0) find_items<C>(p, memory, smem);
    else if (warp == 1) load_queries<C, H>(p, memory, smem);
    else if constexpr (has_fp8_keys(C)) gather_and_convert<C, H>(p, memory, smem, warp - 2);
    else if constexpr (C.gather != 0) gather_keys_and_values<C, H>(p, memory, smem, warp - 2);
    else if (warp == 2) load_tiles<C, H, false>(p, memory, smem);
    else load_tiles<C, H, true>(p, memory, smem);
  } else {
    ptx::increase_registers<kMultiplyingRegisters<C>>();
    multiply_tiles<C, H>(p, memory, smem, warpgroup - 1);
  }
}

}  // namespace quern::attention
