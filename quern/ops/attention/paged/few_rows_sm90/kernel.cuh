// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, h] = softmax_j(scale * q[i, h] . k[j]) v[j] over the keys j of a paged cache that query token i sees, requests of up to 64 rows,
// on sm_90a. A request's rows, query tokens times heads of a group, are the columns of wgmma: logits^T = K q^T and out^T = V^T p^T. One
// block a multiprocessor takes an equal run of all units of 64 keys (work.cuh). A warp brings K and V by TMA into a ring; each warpgroup
// that multiplies takes tiles of its own, with a running maximum and sums of its own. At the end of a segment the first one adds what the
// others have. It writes the output, or a part where the item was cut: of the blocks that have parts of an item the last to end adds them
// in order.
#pragma once
#include "quern/kit/pipeline.cuh"
#include "quern/ops/attention/paged/few_rows_sm90/softmax.cuh"

namespace quern::attention {

/// Named barriers beside those of the warpgroups: of all that multiply; of the sums that the first of them waits for.
constexpr int kMultiplyBarrier = 9, kMergeBarrier = 10;

/// Registers of a thread. A block starts with an equal share for each: 168 of 384 threads, 128 of 512. The warpgroup that loads gives up
/// some of its, and those that multiply share them; 64 rows take about 200.
template <FewRowsConfig C> constexpr int kMultiplyRegisters = C.warpgroups == 3 ? 160 : 232;
template <FewRowsConfig C> constexpr int kLoadRegisters = C.warpgroups == 3 ? 32 : 40;

template <FewRowsConfig C> constexpr i32 kMultiplyThreads = C.warpgroups * kWarpgroupSize;

/// By one warp: the boxes of every tile of the block's run, K then V.
template <FewRowsConfig C> QN_DEVICE void load_tiles(const FewRowsParams& p, Walk walk, u32 smem) {
  constexpr auto S = few_rows_smem(C);
  constexpr paged::BoxTile kTile = tile_of_keys(C);
  Producer<C.stages> fill{smem + S.barriers};
  const i32 rows = p.boxes.rows;
  const paged::BoxLane lane = paged::box_lane<kTile>(rows);
  Segment s;
  while (next_segment<C>(p, walk, s)) {
    const paged::PageRow row{s.keys.pages, p.page_size, p.last_page, p.boxes.no_page};
    i32 page = paged::page_of_box(lane, row, rows, s.begin, s.first, s.end);
    QN_NO_UNROLL
    for (i32 first = s.begin; first < s.end; first += kTileTokens) {
      const i32 of_tile = page;
      page =
          paged::page_of_box(lane, row, rows, first + kTileTokens, s.first, s.end);  // of the next tile, while this one waits for a stage
      QN_UNROLL
      for (int v = 0; v < 2; ++v) {
        const u32 full = full_barrier<C.stages>(fill.barriers, fill.stage);
        ptx::mbarrier_wait(empty_barrier<C.stages>(fill.barriers, fill.stage), fill.parity);
        if (ptx::lane_id() == 0) ptx::mbarrier_arrive_expect_tx(full, u32(paged::tile_bytes(kTile)));
        ptx::sync_warp();
        paged::load_pages<kTile>(smem + S.ring + fill.stage * u32(stage_bytes(C)), v == 0 ? &p.boxes.k : &p.boxes.v, full,
                                 CachePolicy::evict_first, lane, row, first, s.head_kv, of_tile);
        end_fill(fill);
      }
    }
  }
}

/// Which keys the rows of an item see: all of them the first two, some of them the others.
struct SeenKeys {
  i32 all_first, all_last, any_first, any_last;
};
template <FewRowsConfig C> QN_DEVICE SeenKeys seen_keys(const FewRowsParams& p, const Segment& s) {
  if constexpr (C.several == 0) {
    return {s.first, s.keys.end - 1, s.first, s.keys.end - 1};
  } else {
    const i32 row = s.head_tile * C.group_rows;
    const Span top = visible_span(p, s.queries, s.keys, place_of_row(p, 0, row).query),
               bottom = visible_span(p, s.queries, s.keys, place_of_row(p, 0, row + s.rows - 1).query);
    return {bottom.first, top.last, top.first, bottom.last};
  }
}

/// The warpgroup's tiles of a segment. `read`: the ring at the segment's first tile.
template <FewRowsConfig C> QN_DEVICE void sum_tiles(const FewRowsParams& p, const Segment& s, u8* memory, const Consumer<C.stages>& begin,
                                                    ItemState<C>& sums) {
  constexpr auto S = few_rows_smem(C);
  const u32 smem = ptx::smem_address(memory), warpgroup = warpgroup_id();
  const u32 probabilities = smem + S.probabilities + warpgroup * C.group_rows * kTileTokens * 2;
  const SeenKeys seen = seen_keys<C>(p, s);
  Consumer<C.stages> read = begin;
  skip_reads(read, 2 * warpgroup);
  QN_NO_UNROLL
  for (i32 first = s.begin + i32(warpgroup) * kTileTokens; first < s.end; first += C.warpgroups * kTileTokens) {
    f32 x[C.group_rows / 2];
    begin_read(read);
    multiply_keys<C>(smem + S.ring + read.stage * u32(stage_bytes(C)), smem + S.queries, x);
    end_read(read);
    make_logits<C>(p, s, memory, first, first < seen.all_first || first + kTileTokens - 1 > seen.all_last, x);
    make_probabilities<C>(s, memory, probabilities, x, sums);
    begin_read(read);
    const u32 stage = u32(S.ring) + read.stage * u32(stage_bytes(C));
    if (first < seen.any_first || first + kTileTokens - 1 > seen.any_last)
      zero_values<C>(memory + stage, seen.any_first - first, seen.any_last + 1 - first);
    multiply_values<C>(smem + stage, probabilities, sums.out);
    end_read(read);
    skip_reads(read, 2 * (C.warpgroups - 1));
  }
}

/// Eight rows of a complete item, from where their threads hold them, to shared memory: [row][head_dim + 4] f32. A warp's 32 stores go to
/// different banks.
template <FewRowsConfig C> constexpr i32 kResultPitch = C.head_dim + 4;
template <FewRowsConfig C, class Sum> QN_DEVICE void turn_eight_rows(u8* smem, i32 i, const SoftmaxState (&states)[2], const Sum& sum) {
  f32* rows = reinterpret_cast<f32*>(smem + few_rows_smem(C).merge);
  const i32 first = 8 * i + 2 * i32(ptx::lane_id() % 4);
  QN_UNROLL
  for (int e = 0; e < 2; ++e) {
    if (thread_of_warpgroup() < 4) reinterpret_cast<SoftmaxState*>(smem + few_rows_smem(C).states)[first + e] = states[e];
    QN_UNROLL
    for (int m = 0; m < value_tiles(C); ++m) {
      QN_UNROLL
      for (int half = 0; half < 2; ++half) {
        const i32 column = value_column<C>(m, half);
        if (C.head_dim % 64 == 0 || column < C.head_dim) rows[(first + e) * kResultPitch<C> + column] = sum(m, 2 * half + e);
      }
    }
  }
}
/// Turned rows become outputs: eight rows from each 8 `first`, 8 (first + step) .. on. By a warpgroup, a warp a row.
template <FewRowsConfig C> QN_DEVICE void store_rows(const FewRowsParams& p, const Segment& s, const u8* smem, i32 first, i32 step) {
  const f32* rows = reinterpret_cast<const f32*>(smem + few_rows_smem(C).merge);
  const SoftmaxState* states = reinterpret_cast<const SoftmaxState*>(smem + few_rows_smem(C).states);
  const i32 lane = i32(ptx::lane_id());
  sync_warpgroup();
  QN_NO_UNROLL
  for (i32 at = i32(warp_of_warpgroup());; at += 4) {
    const i32 row = 8 * (first + at / 8 * step) + at % 8;
    if (8 * (first + at / 8 * step) >= s.rows) break;
    if (row >= s.rows) continue;
    const RowPlace place = row_place<C>(p, s.head_kv, s.head_tile, row);
    const i64 token = s.queries.begin + place.query;
    const Finish finish = finish_row(p, states[row], place.head_q, sum_shift_of<C.dtype>());
    const f32 factor = finish.factor * result_factor(p, s.request, s.head_kv);
    QN_UNROLL
    for (i32 column = 2 * lane; column < C.head_dim; column += 64)
      store_pair(out_row<C>(p, token, place.head_q) + column, finished(finish, rows[row * kResultPitch<C> + column], factor),
                 finished(finish, rows[row * kResultPitch<C> + column + 1], factor), p.out_pairs != 0);
    if (lane == 0 && p.out_lse) store_lse(p, token, place.head_q, finish.lse);
  }
}

/// By the first warpgroup, when it has written its part of an item that was cut: whether this block is the last of the item's blocks to do
/// so.
template <FewRowsConfig C> QN_DEVICE void count_part(const FewRowsParams& p, const Segment& s, u32* last) {
  sync_warpgroup();  // its threads have written the part
  if (thread_of_warpgroup() != 0) return;
  u32 ended = 1;
  if (s.blocks > 1) ended = ptx::atomic_add_acq_rel_gpu(p.counters + s.counter, 1) + 1;
  *last = u32(ended == u32(s.blocks));
}

/// By all that multiply: the first warpgroup's sums of the segment become the item's rows, or a part; of all parts, by the last block of
/// the item, rows.
template <FewRowsConfig C> QN_DEVICE void finish_segment(const FewRowsParams& p, const Segment& s, u8* smem, const ItemState<C>& sums) {
  const i32 warpgroup = i32(warpgroup_id());
  u32* last = reinterpret_cast<u32*>(smem + few_rows_smem(C).last);
  if (warpgroup == 0 && s.slot < 0) {
    sync_warpgroup();  // what the others had summed has been read
    QN_UNROLL
    for (int i = 0; i < C.group_rows / 8; ++i) {
      if (8 * i >= s.rows) continue;
      turn_eight_rows<C>(smem, i, {sums.rows[2 * i], sums.rows[2 * i + 1]}, [&](int m, int j) { return sums.out[m][4 * i + j]; });
    }
    store_rows<C>(p, s, smem, 0, 1);
  }
  if (warpgroup == 0 && s.slot >= 0) {
    store_state<C>(s, sums, reinterpret_cast<f32*>(p.part_sums) + s.slot * part_floats(C),
                   reinterpret_cast<f32*>(p.part_states) + s.slot * C.group_rows * 2,
                   [](f32* to, u32x4 four) { ptx::st_global(to, four); });
    if (s.last) count_part<C>(p, s, last);
  }
  if (s.slot < 0 || !s.last) return;
  ptx::bar_sync(kMultiplyBarrier, kMultiplyThreads<C>);
  if (*last == 0) return;
  QN_NO_UNROLL
  for (i32 i = warpgroup; 8 * i < s.rows; i += C.warpgroups) {
    const EightRows<C> rows = add_parts<C>(p, s, i);
    turn_eight_rows<C>(smem, i, rows.rows, [&](int m, int j) { return rows.out[m][j]; });
  }
  store_rows<C>(p, s, smem, warpgroup, C.warpgroups);
}

/// The warpgroups that multiply, over the block's run.
template <FewRowsConfig C> QN_DEVICE void sum_run(const FewRowsParams& p, Walk walk, u8* memory) {
  constexpr auto S = few_rows_smem(C);
  const u32 warpgroup = warpgroup_id();
  f32* merged = reinterpret_cast<f32*>(memory + S.merge);
  f32* states = reinterpret_cast<f32*>(memory + S.states);
  Consumer<C.stages> read{ptx::smem_address(memory) + S.barriers};
  Segment s;
  while (next_segment<C>(p, walk, s)) {
    ptx::bar_sync(kMultiplyBarrier, kMultiplyThreads<C>);  // nobody reads q, the rows' facts and merged sums any more
    store_queries<C>(p, s, memory);
    ptx::fence_proxy_async_shared();
    ptx::bar_sync(kMultiplyBarrier, kMultiplyThreads<C>);
    ItemState<C> sums;
    clear<C>(sums);
    sum_tiles<C>(p, s, memory, read, sums);
    skip_reads(read, 2 * u32(ceil_div(s.end - s.begin, kTileTokens)));
    add_tokens<C>(s, memory, sums);
    if constexpr (C.warpgroups > 1) {
      if (warpgroup > 0) {
        store_state<C>(s, sums, merged + i32(warpgroup - 1) * part_floats(C), states + i32(warpgroup) * C.group_rows * 2,
                       [](f32* to, u32x4 four) { ptx::st_shared(to, four); });
        ptx::bar_arrive(kMergeBarrier, kMultiplyThreads<C>);
      } else {
        ptx::bar_sync(kMergeBarrier, kMultiplyThreads<C>);
        QN_NO_UNROLL
        for (i32 w = 1; w < C.warpgroups; ++w) join<C>(s, sums, merged + (w - 1) * part_floats(C), states + w * C.group_rows * 2);
      }
    }
    finish_segment<C>(p, s, memory, sums);
  }
}

/// Memory that wgmma reads and nobody writes: probabilities of rows that an item has not, and columns behind head_dim. By all threads but
/// the warp that loads.
template <FewRowsConfig C> QN_DEVICE void clear_unused(u8* smem) {
  constexpr auto S = few_rows_smem(C);
  constexpr i32 kBytes = paged::tile_bytes(tile_of_keys(C)), kStage = has_fp8_keys(C) ? kBytes : stage_bytes(C);
  const u32x4 zeros{0, 0, 0, 0};
  for (i32 at = 16 * i32(threadIdx.x); at < S.merge - S.probabilities; at += 16 * kMultiplyThreads<C>)
    ptx::st_shared(smem + S.probabilities + at, zeros);
  for (i32 stage = 0; kBytes < kStage && stage < C.stages; ++stage)
    for (i32 at = kBytes + 16 * i32(threadIdx.x); at < kStage; at += 16 * kMultiplyThreads<C>)
      ptx::st_shared(smem + S.ring + stage * stage_bytes(C) + at, zeros);
  ptx::fence_proxy_async_shared();
}

template <FewRowsConfig C> QN_DEVICE void paged_few_rows_sm90(const FewRowsParams& p) {
  constexpr auto S = few_rows_smem(C);
  static_assert(C.threads == kMultiplyThreads<C> + kWarpgroupSize && C.stages % (2 * C.warpgroups) == 0);
  QN_SMEM(smem);
  const u32 warp = ptx::shfl(ptx::warp_id(), 0);
  if (threadIdx.x == u32(kMultiplyThreads<C>)) {
    ptx::prefetch_tensormap(&p.boxes.k);
    ptx::prefetch_tensormap(&p.boxes.v);
    pipeline_init<C.stages>(ptx::smem_address(smem) + S.barriers, 4);
  }
  if (warp < u32(kMultiplyThreads<C>) / 32) clear_unused<C>(smem);
  ptx::sync_block();
  ptx::grid_launch_dependents();
  fetch_tables<C>(p);
  ptx::grid_dependency_wait();
  const Walk walk = start_walk<C>(p, reinterpret_cast<u32*>(smem + S.scan));
  if (warp < u32(kMultiplyThreads<C>) / 32) {
    ptx::increase_registers<kMultiplyRegisters<C>>();
    sum_run<C>(p, walk, smem);
    write_blind_rows<C, kMultiplyThreads<C>>(p);
  } else {
    ptx::decrease_registers<kLoadRegisters<C>>();
    if (warp == u32(kMultiplyThreads<C>) / 32) load_tiles<C>(p, walk, ptx::smem_address(smem));
  }
}

}  // namespace quern::attention
