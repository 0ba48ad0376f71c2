// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Tiles of prefill_mma: rows of q, keys and values come into shared memory as 16-bit elements, and are multiplied by mma.sync.
#pragma once
#include "quern/kit/mma_tile.cuh"
#include "quern/ops/attention/prefill/logits.cuh"

namespace quern::attention {

/// The block's rows of q. Rows beyond the request's are zeros.
template <PrefillConfig C> QN_DEVICE void copy_queries(const PrefillParams& p, const RowTile& at, u8* to) {
  QN_NO_UNROLL
  for (u32 row = threadIdx.x / 8; row < u32(block_rows(C)); row += C.threads / 8) {
    const bool read = i32(row) < at.rows;
    const RowPlace place = place_of_row(p, at.head_kv, at.first_row + (read ? i32(row) : 0));
    const u8* from = p.q + (at.queries.begin + place.query) * p.q_token + i64(place.head_q) * p.q_head;
    // Once a block: the alignment of q is no reason for a kernel of its own
    if (p.q_wide) copy_row<dtype_t<C.q_dtype>, dtype_t<C.dtype>, unit_bytes(C.q_dtype, 16), C.head_dim>(to, row, from, read);
    else copy_row<dtype_t<C.q_dtype>, dtype_t<C.dtype>, size_of(C.q_dtype), C.head_dim>(to, row, from, read);
  }
}

/// The page of key `first + thread` for threads of a tile's keys. Entries of pages that no row sees are not read.
template <PrefillConfig C> QN_DEVICE i32 find_page(const PrefillParams& p, const RowTile& at, i32 first) {
  if constexpr (C.places == KeyPlaces::contiguous) return 0;
  const i32 key = first + i32(threadIdx.x);
  if (i32(threadIdx.x) >= C.tile_tokens || key < at.begin || key >= at.end) return 0;
  return page_at(p, at.keys.pages, key);
}
template <PrefillConfig C> QN_DEVICE void store_page(i32* pages, i32 page) {
  if constexpr (C.places != KeyPlaces::contiguous)
    if (i32(threadIdx.x) < C.tile_tokens) ptx::st_shared<u32>(pages + threadIdx.x, u32(page));
}

/// What a thread has of a tile that comes by registers: rows thread / 8, + threads / 8, ..
template <PrefillConfig C, int kWidth> struct TileOnItsWay {
  static constexpr bool kHeld = comes_by_registers(C.kv_dtype, C.copy_bytes);
  static constexpr bool kStoredAtOnce = kWidth > 192;  // else beside the sums registers would not suffice
  RowOnItsWay<kWidth> rows[kHeld ? C.tile_tokens / (C.threads / 8) : 1];
};

/// Stores what comes by registers.
template <PrefillConfig C, int kWidth> QN_DEVICE void store_rows_of_tile(u8* to, const TileOnItsWay<C, kWidth>& coming) {
  constexpr u32 kRows = C.threads / 8;
  QN_UNROLL
  for (u32 i = 0; i < u32(C.tile_tokens) / kRows; ++i)
    store_row<dtype_t<C.kv_dtype>, dtype_t<C.dtype>, kWidth>(to, threadIdx.x / 8 + i * kRows, coming.rows[i]);
}

/// Starts the copies of keys (or values) first, first + 1, .. of a head. What no row sees becomes zeros: a probability of 0 times what
/// memory happens to hold could be NaN.
template <PrefillConfig C, int kWidth>
QN_DEVICE void copy_tile(const PrefillParams& p, const RowTile& at, const i32* pages, i32 first, const u8* head, i64 page_stride,
                         i64 token_stride, u8* to, TileOnItsWay<C, kWidth>& coming) {
  constexpr u32 kRows = C.threads / 8;
  QN_UNROLL
  for (u32 i = 0; i < u32(C.tile_tokens) / kRows; ++i) {
    const u32 row = threadIdx.x / 8 + i * kRows;
    const i32 key = first + i32(row);
    const bool read = key >= at.begin && key < at.end;
    const u8* from = head;
    if (read) {
      if constexpr (C.places == KeyPlaces::contiguous) {
        from += (at.keys.first + key) * token_stride;
      } else {
        const i32 slot = key - i32(quotient(u32(key), p.page_size) * p.page_size.value);
        from += i64(i32(ptx::ld_shared<u32>(pages + row))) * page_stride + slot * token_stride;
      }
    }
    if constexpr (TileOnItsWay<C, kWidth>::kHeld) read_row<kWidth>(coming.rows[i], from, read);
    else copy_row<dtype_t<C.kv_dtype>, dtype_t<C.dtype>, unit_bytes(C.kv_dtype, C.copy_bytes), kWidth>(to, row, from, read);
  }
  if constexpr (TileOnItsWay<C, kWidth>::kHeld && TileOnItsWay<C, kWidth>::kStoredAtOnce) store_rows_of_tile<C>(to, coming);
}
/// Ends the copies of what comes by registers.
template <PrefillConfig C, int kWidth> QN_DEVICE void store_tile(u8* to, const TileOnItsWay<C, kWidth>& coming) {
  if constexpr (TileOnItsWay<C, kWidth>::kHeld && !TileOnItsWay<C, kWidth>::kStoredAtOnce) store_rows_of_tile<C>(to, coming);
}

/// First row of the warp in the block's tile.
template <PrefillConfig C> QN_DEVICE u32 warp_row() { return threadIdx.x / 32 / C.column_parts * (16 * C.row_tiles); }

/// x[m][n][e] = q . k of row 16 * m + lane / 4 + 8 * (e / 2) and key 8 * n + 2 * (lane % 4) + e % 2.
template <PrefillConfig C> QN_DEVICE void multiply_keys(u32 queries, u32 keys, Logits<C>& x) {
  const u32 lane = ptx::lane_id();
  QN_UNROLL
  for (int step = 0; step < C.head_dim / 16; ++step) {
    u32 q[C.row_tiles][4];
    QN_UNROLL
    for (int m = 0; m < C.row_tiles; ++m)
      ptx::ldmatrix_x4(q[m], queries + chunk_offset<C.head_dim>(warp_row<C>() + u32(16 * m) + lane % 16, u32(2 * step) + lane / 16));
    QN_UNROLL
    for (int n = 0; n < C.tile_tokens / 16; ++n) {
      u32 k[4];
      ptx::ldmatrix_x4(k, keys + chunk_offset<C.head_dim>(u32(16 * n) + lane / 16 * 8 + lane % 8, u32(2 * step) + lane / 8 % 2));
      QN_UNROLL
      for (int m = 0; m < C.row_tiles; ++m) {
        mma_k16<dtype_t<C.dtype>>(x[m][2 * n], q[m], {k[0], k[1]});
        mma_k16<dtype_t<C.dtype>>(x[m][2 * n + 1], q[m], {k[2], k[3]});
      }
    }
  }
}

/// out += probabilities of 16 keys (`step`-th of the tile) times their values.
template <PrefillConfig C> QN_DEVICE void multiply_values(const u32 (&p)[C.row_tiles][4], int step, u32 values, WarpRows<C>& rows) {
  const u32 lane = ptx::lane_id();
  const u32 first = threadIdx.x / 32 % C.column_parts * (WarpRows<C>::kColumns / 8);  // chunk of the warp's part
  QN_UNROLL
  for (int j = 0; j < WarpRows<C>::kColumns / 16; ++j) {
    u32 v[4];
    ptx::ldmatrix_x4_trans(
        v, values + chunk_offset<C.head_dim_v>(u32(16 * step) + lane / 8 % 2 * 8 + lane % 8, first + u32(2 * j) + lane / 16));
    QN_UNROLL
    for (int m = 0; m < C.row_tiles; ++m) {
      mma_k16<dtype_t<C.dtype>>(rows.out[m][2 * j], p[m], {v[0], v[1]});
      mma_k16<dtype_t<C.dtype>>(rows.out[m][2 * j + 1], p[m], {v[2], v[3]});
    }
  }
}

}  // namespace quern::attention
