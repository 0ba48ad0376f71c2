// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, h] = softmax_j(scale * q[i, h] . k[j]) v[j] over the keys j that query token i sees, many rows a request.
// Query tokens and the query heads of a KV head are the rows of a request: row r is token r / group, head r % group. A block takes a
// tile of rows of one request and KV head and walks over the keys that any of them sees, tile by tile in ascending order, with
// online softmax. K of the next tile is copied while probabilities are made and multiplied, V of this one while keys are multiplied.
// The sums of a row depend on its own request alone, so rows have the same bits in every batch.
#pragma once
#include "quern/ops/attention/prefill/store_rows.cuh"
#include "quern/ops/attention/prefill/tile.cuh"

namespace quern::attention {

template <PrefillConfig C, class H> QN_DEVICE void prefill_mma(const PrefillParams& p) {
  constexpr auto S = prefill_smem(C);
  QN_SMEM(smem);
  i32* pages = reinterpret_cast<i32*>(smem + S.pages);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  const RowTile at = find_row_tile<C>(p, reinterpret_cast<u32*>(smem + S.scan));
  if (at.rows <= 0) return;
  const u8* k_head = p.k + i64(at.head_kv) * p.k_head;
  const u8* v_head = p.v + i64(at.head_kv) * p.v_head;
  const u32 queries = ptx::smem_address(smem + S.queries), keys = ptx::smem_address(smem + S.keys),
            values = ptx::smem_address(smem + S.values);
  WarpRows<C> rows;
  TileOnItsWay<C, C.head_dim> keys_coming;
  TileOnItsWay<C, C.head_dim_v> values_coming;
  clear_rows<C>(rows);
  i32 first = first_tile<C, H>(p, at);
  if (first < at.end) {
    store_page<C>(pages, find_page<C>(p, at, first));
    copy_queries<C>(p, at, smem + S.queries);
    ptx::sync_block();
    copy_tile<C, C.head_dim>(p, at, pages, first, k_head, p.k_page, p.k_token, smem + S.keys, keys_coming);
    ptx::cp_async_commit();
    store_tile<C>(smem + S.keys, keys_coming);
  }
  i32 buffer = 0;  // of page entries
  const bool late = scales_late<C, H>(p);
  const RowFactors<C> no_factors = {};
  const Span seen = seen_by_all(p, at);
  while (first < at.end) {
    ptx::cp_async_wait<0>();
    ptx::sync_block();  // keys have come; the values before were multiplied
    copy_tile<C, C.head_dim_v>(p, at, pages + buffer * C.tile_tokens, first, v_head, p.v_page, p.v_token, smem + S.values, values_coming);
    ptx::cp_async_commit();
    const i32 next = next_tile<C, H>(p, at, first + C.tile_tokens);
    const i32 page = find_page<C>(p, at, next);
    Logits<C> x = {};
    multiply_keys<C>(queries, keys, x);
    buffer ^= 1;
    store_page<C>(pages + buffer * C.tile_tokens, page);
    const bool masked = tests_keys<C, H>(seen, first) && !hook_sees_all<C, H>(p, at, seen, first);
    make_logits<C, H>(p, at, warp_row<C>() + ptx::lane_id() / 4, first, masked, late, no_factors, x);
    f32 factors[C.row_tiles][2];
    make_probabilities<C>(x, late ? f32(p.scale) * f32(kLog2E) : f32(1.f), late, no_factors, rows.states, factors);
    scale_sums<C>(factors, rows);
    store_tile<C>(smem + S.values, values_coming);
    ptx::cp_async_wait<0>();
    ptx::sync_block();  // values have come; the keys were multiplied
    if (next < at.end)
      copy_tile<C, C.head_dim>(p, at, pages + buffer * C.tile_tokens, next, k_head, p.k_page, p.k_token, smem + S.keys, keys_coming);
    ptx::cp_async_commit();
    QN_UNROLL
    for (int step = 0; step < C.tile_tokens / 16; ++step) {
      u32 packed[C.row_tiles][4];
      pack_probabilities<C>(x, step, packed);
      multiply_values<C>(packed, step, values, rows);
    }
    if (next < at.end) store_tile<C>(smem + S.keys, keys_coming);
    first = next;
  }
  store_rows<C>(p, at, warp_row<C>() + ptx::lane_id() / 4, i32(threadIdx.x / 32 % C.column_parts) * WarpRows<C>::kColumns, rows);
}

}  // namespace quern::attention
