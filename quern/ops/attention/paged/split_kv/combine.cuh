// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out = sum_k w_k part_k / sum_k w_k, w_k = exp2(lse_k - max lse): merges the parts of cut items. One block a row: of every item
// (fixed_chunks), or of every item that crosses from one block of paged_split_kv to the next (else). Threads take 4 columns
// each; the rest of the block takes every n-th part, and the n sums are added in order.
#pragma once
#include "quern/ops/attention/paged/split_kv/parts.cuh"

namespace quern::attention {

/// The parts of one output row.
struct Parts {
  i64 request, token;
  i32 head_q;
  i32 count;        // below 2: nothing to merge
  i64 first, then;  // slot of part 0, and of part 1; later ones follow at `step`
  i32 step;
  i32 slot_row;
};

template <CombineConfig C> QN_DEVICE Parts find_parts(const SplitKvParams& p) {
  const i32 items = p.heads_kv * p.head_tiles, rows = C.several != 0 ? 16 : min_of(i32(p.group.value), 16);
  if constexpr (C.fixed_chunks != 0) {
    const u32 tile = blockIdx.x / u32(rows);
    const i32 row = i32(blockIdx.x % u32(rows)), item = i32(tile % u32(items)), head_tile = item % p.head_tiles;
    const i64 request = tile / u32(items);
    const Request r = request_of<C>(p, request);
    const i32 visible = visible_keys<C>(p, r);
    if (visible == 0 || row >= item_rows<C>(p, r.queries.count, head_tile)) return {};
    const RowPlace place = row_place<C>(p, item / p.head_tiles, head_tile, row);
    const i64 first = (request * items + item) * p.max_splits;
    return {request, r.queries.begin + place.query, place.head_q, units_of<true>(visible, 0), first, first + 1, 1, row};
  } else {
    const i32 block = i32(blockIdx.x) / rows, row = i32(blockIdx.x) % rows;
    const u32x4 leader = ptx::ld_global<u32x4>(p.leaders + 4 * i64(block));
    const i32 item = i32(leader.y), first = i32(leader.z), head_tile = item % p.head_tiles;
    if (i32(leader.x) < 0) return {};
    QueryTokens queries{i32(leader.x), 1};
    if constexpr (C.several != 0) queries = query_tokens(p, i32(leader.x));
    if (row >= item_rows<C>(p, queries.count, head_tile)) return {};
    const RowPlace place = row_place<C>(p, item / p.head_tiles, head_tile, row);
    return {i32(leader.x),
            queries.begin + place.query,
            place.head_q,
            i32(leader.w) - first + 1,
            2 * i64(first) + 1,
            2 * i64(first) + 2,
            2,
            row};
  }
}

/// Row of the workspace that holds part k.
template <CombineConfig C> QN_DEVICE i64 part_row(const Parts& parts, i32 k) {
  const i64 slot = k == 0 ? parts.first : parts.then + i64(k - 1) * parts.step;
  return slot * C.group_rows + parts.slot_row;
}

template <CombineConfig C> QN_DEVICE void paged_combine(const SplitKvParams& p) {
  constexpr auto S = combine_smem(C);
  constexpr i32 kQuads = C.head_dim / 4, kLanes = C.threads / kQuads;
  QN_SMEM(smem);
  f32* reduce = reinterpret_cast<f32*>(smem + S.reduce);
  f32* weights = reinterpret_cast<f32*>(smem + S.weights);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  const Parts parts = find_parts<C>(p);
  if (parts.count < 2) return;
  // Weights: the largest lse, then exp2 of the distances
  SoftmaxState all = empty_softmax();
  for (i32 k = i32(threadIdx.x); k < parts.count; k += C.threads) {
    const f32 lse = ptx::ld_global<f32>(p.part_lse + part_row<C>(parts, k));
    weights[k] = lse;
    all.max = ptx::fmax(all.max, lse);
  }
  all.max = warp_max(all.max);
  if (ptx::lane_id() == 0) reduce[threadIdx.x / 32] = all.max;
  ptx::sync_block();
  for (int w = 0; w < C.threads / 32; ++w) all.max = ptx::fmax(all.max, reduce[w]);
  f32 sum = 0.f;
  for (i32 k = i32(threadIdx.x); k < parts.count; k += C.threads) {
    const f32 weight = softmax_weight(weights[k], all.max);
    weights[k] = weight;
    sum = sum + weight;
  }
  all.sum = block_sum<C.threads>(sum, reduce + 8);
  ptx::sync_block();
  // Columns
  const i32 quad = i32(threadIdx.x) % kQuads, lane = i32(threadIdx.x) / kQuads;
  f32 out[4] = {};
  if (lane < kLanes) {
    for (i32 k = lane; k < parts.count; k += kLanes) {
      f32 part[4];
      load_f32<f32, 4>(reinterpret_cast<const f32*>(p.part_out) + part_row<C>(parts, k) * C.head_dim + quad * 4, part);
      QN_UNROLL
      for (int c = 0; c < 4; ++c) out[c] = ptx::fma(part[c], weights[k], out[c]);
    }
  }
  f32* sums = reinterpret_cast<f32*>(smem + S.sums);
  for (int c = 0; c < 4; ++c) sums[4 * threadIdx.x + c] = out[c];
  ptx::sync_block();
  if (lane != 0) return;
  for (i32 l = 1; l < kLanes; ++l)
    for (int c = 0; c < 4; ++c) out[c] = out[c] + sums[4 * (l * kQuads + quad) + c];
  const Finish finish = finish_row(p, all, parts.head_q, 0.f);
  const f32 factor = finish.factor * result_factor(p, parts.request, parts.head_q / i32(p.group.value));
  auto* to = out_row<C>(p, parts.token, parts.head_q) + quad * 4;
  store_pair(to, finished(finish, out[0], factor), finished(finish, out[1], factor), p.out_pairs != 0);
  store_pair(to + 2, finished(finish, out[2], factor), finished(finish, out[3], factor), p.out_pairs != 0);
  if (quad == 0 && p.out_lse) store_lse(p, parts.token, parts.head_q, finish.lse);
}

}  // namespace quern::attention
