// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, h] = softmax_j(scale * q[i, h] . k[j]) v[j] over the keys j that query token i sees, many rows a request.
// Query tokens and the query heads of a KV head are the rows of a request: row r is token r / group, head r % group. A block takes a
// tile of rows of one request and KV head and walks over the keys that any of them sees, tile by tile in ascending order, with
// online softmax. K of the next tile is copied while probabilities are made and multiplied, V of this one while keys are multiplied.
// The sums of a row depend on its own request alone, so rows have the same bits in every batch.
#pragma once
#include "quern/ops/attention/prefill/logits.cuh"

namespace quern::attention {

/// The row sums of a warp become outputs.
template <PrefillConfig C> QN_DEVICE void store_rows(const PrefillParams& p, const RowTile& at, WarpRows<C>& rows) {
  using T = dtype_t<C.out_dtype>;
  const u32 lane = ptx::lane_id();
  const i32 part = i32(threadIdx.x / 32 % C.column_parts) * WarpRows<C>::kColumns;
  QN_UNROLL
  for (int m = 0; m < C.row_tiles; ++m) {
    QN_UNROLL
    for (int half = 0; half < 2; ++half) {
      SoftmaxState state = rows.states[m][half];
      state.sum = warp_sum<4>(state.sum);
      const i32 in_tile = i32(warp_row<C>() + 16 * m + lane / 4 + 8 * half);
      if (in_tile >= at.rows) continue;
      const RowPlace place = place_of_row(p, at.head_kv, at.first_row + in_tile);
      const i64 token = at.queries.begin + place.query;
      const Finish finish = finish_row(p, state, place.head_q, sum_shift_of<C.dtype>());
      const f32 by = finish.factor * result_factor(p, at.request, at.head_kv);
      T* to = reinterpret_cast<T*>(out_of(p, token, place.head_q)) + part + 2 * (lane % 4);
      QN_UNROLL
      for (int j = 0; j < WarpRows<C>::kColumns / 8; ++j) store_pair(to + 8 * j, finished(finish, rows.out[m][j][2 * half], by), finished(finish, rows.out[m][j][2 * half + 1], by), p.out_pairs != 0);
      if (part == 0 && lane % 4 == 0 && p.out_lse) store_lse(p, token, place.head_q, finish.lse);
    }
  }
}

template <PrefillConfig C, class H> QN_DEVICE void prefill_mma(const PrefillParams& p) {
  constexpr auto S = prefill_smem(C);
  constexpr bool kTests = C.bits != 0 || has_visible<H>;  // keys are tested one by one
  QN_SMEM(smem);
  i32* pages = reinterpret_cast<i32*>(smem + S.pages);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  const RowTile at = find_row_tile<C>(p, reinterpret_cast<u32*>(smem + S.scan));
  if (at.rows <= 0) return;
  const u8* k_head = p.k + i64(at.head_kv) * p.k_head;
  const u8* v_head = p.v + i64(at.head_kv) * p.v_head;
  const u32 queries = ptx::smem_address(smem + S.queries), keys = ptx::smem_address(smem + S.keys), values = ptx::smem_address(smem + S.values);
  WarpRows<C> rows;
  QN_UNROLL
  for (int m = 0; m < C.row_tiles; ++m) {
    rows.states[m][0] = rows.states[m][1] = empty_softmax();
    for (auto& column : rows.out[m])
      for (f32& value : column) value = 0.f;
  }
  // Tiles of keys begin at multiples of tile_tokens, so that their bounds do not depend on the block's rows
  i32 first = at.begin / C.tile_tokens * C.tile_tokens;
  const auto skip = [&](i32 from) {  // to the first tile that a hook's `tile` does not leave out
    if constexpr (has_tile<H>)
      while (from < at.end && tile_of<H>(p, at, from, from + C.tile_tokens) == TileVisibility::skip) from += C.tile_tokens;
    return from;
  };
  first = skip(first);
  if (first < at.end) {
    store_page<C>(pages, find_page<C>(p, at, first));
    copy_queries<C>(p, at, smem + S.queries);
    ptx::sync_block();
    copy_tile<C, C.head_dim>(p, at, pages, first, k_head, p.k_page, p.k_token, smem + S.keys);
    ptx::cp_async_commit();
  }
  i32 buffer = 0;  // of page entries
  const bool late = scales_late<C, H>(p);
  while (first < at.end) {
    ptx::cp_async_wait<0>();
    ptx::sync_block();  // keys have come; the values before were multiplied
    copy_tile<C, C.head_dim_v>(p, at, pages + buffer * C.tile_tokens, first, v_head, p.v_page, p.v_token, smem + S.values);
    ptx::cp_async_commit();
    const i32 next = skip(first + C.tile_tokens);
    const i32 page = find_page<C>(p, at, next);
    Logits<C> x = {};
    multiply_keys<C>(queries, keys, x);
    buffer ^= 1;
    store_page<C>(pages + buffer * C.tile_tokens, page);
    bool masked = !all_visible<C>(p, at, first);
    if constexpr (kTests) {
      masked = true;
      if constexpr (has_tile<H> && C.bits == 0) masked = !all_visible<C>(p, at, first) || tile_of<H>(p, at, first, first + C.tile_tokens) != TileVisibility::full;
    }
    make_logits<C, H>(p, at, first, masked, late, x);
    make_probabilities<C>(x, late ? f32(p.scale) * f32(kLog2E) : f32(1.f), rows);
    ptx::cp_async_wait<0>();
    ptx::sync_block();  // values have come; the keys were multiplied
    if (next < at.end) copy_tile<C, C.head_dim>(p, at, pages + buffer * C.tile_tokens, next, k_head, p.k_page, p.k_token, smem + S.keys);
    ptx::cp_async_commit();
    QN_UNROLL
    for (int step = 0; step < C.tile_tokens / 16; ++step) {
      u32 packed[C.row_tiles][4];
      pack_probabilities<C>(x, step, packed);
      multiply_values<C>(packed, step, values, rows);
    }
    first = next;
  }
  store_rows<C>(p, at, rows);
}

}  // namespace quern::attention
