// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Tiles of prefill_mma: rows of q, keys and values come into shared memory as 16-bit elements, and are multiplied by mma.sync.
#pragma once
#include "quern/kit/mma_tile.cuh"
#include "quern/ops/attention/prefill/request.cuh"

namespace quern::attention {

/// kBytes of a row of T, from byte `byte` on, into row `row` of a tile of kWidth 16-bit elements; zeros where `read` is false.
/// FP8 becomes `To`, exactly: both have every value of e4m3 and e5m2.
template <class T, class To, int kBytes, int kWidth> QN_DEVICE void copy_unit(u8* tile, u32 row, u32 byte, const u8* from, bool read) {
  if constexpr (sizeof(T) == 2) {
    copy_bytes<kBytes>(tile + chunk_offset<kWidth>(row, byte / 16) + byte % 16, from + byte, read);
  } else {
    u8* to = tile + chunk_offset<kWidth>(row, byte / 8) + byte % 8 * 2;
    f32 x[kBytes];
    QN_UNROLL
    for (int i = 0; i < kBytes; ++i) x[i] = 0.f;
    if (read) load_f32<T, kBytes>(reinterpret_cast<const T*>(from + byte), x);
    ptx::st_shared<typename Packed<To, kBytes>::Raw>(to, pack<To, kBytes>(x).raw);
  }
}

/// Bytes of one unit: FP8 becomes twice as wide.
QN_HOST_DEVICE constexpr i32 unit_bytes(DType dtype, i32 access) { return size_of(dtype) == 1 ? min_of(access, 8) : access; }

/// A row of a tile by 8 lanes.
template <class T, class To, int kBytes, int kWidth> QN_DEVICE void copy_row(u8* tile, u32 row, const u8* from, bool read) {
  constexpr u32 kUnits = kWidth * u32(sizeof(T)) / kBytes;
  const u32 lane = ptx::lane_id() % 8;
  if constexpr (kBytes >= 8) {
    QN_UNROLL
    for (u32 pass = 0; pass < ceil_div(kUnits, 8u); ++pass)
      if (kUnits % 8 == 0 || lane + 8 * pass < kUnits) copy_unit<T, To, kBytes, kWidth>(tile, row, (lane + 8 * pass) * kBytes, from, read);
  } else {  // unrolled, these would be hundreds of copies in a row
    for (u32 unit = lane; unit < kUnits; unit += 8) copy_unit<T, To, kBytes, kWidth>(tile, row, unit * kBytes, from, read);
  }
}

/// The block's rows of q. Rows beyond the request's are zeros.
template <PrefillConfig C> QN_DEVICE void copy_queries(const PrefillParams& p, const RowTile& at, u8* to) {
  QN_NO_UNROLL
  for (u32 row = threadIdx.x / 8; row < u32(block_rows(C)); row += C.threads / 8) {
    const bool read = i32(row) < at.rows;
    const u32 of_request = u32(at.first_row) + (read ? row : 0), query = quotient(of_request, p.group), head = of_request - query * p.group.value;
    const u8* from = p.q + (at.queries.begin + query) * p.q_token + (i64(at.head_kv) * p.group.value + head) * p.q_head;
    copy_row<dtype_t<C.q_dtype>, dtype_t<C.dtype>, unit_bytes(C.q_dtype, C.q_bytes), C.head_dim>(to, row, from, read);
  }
}

/// The page of key `first + thread` for threads of a tile's keys. Entries of pages that no row sees are not read, and a page that the
/// cache does not have becomes page 0.
template <PrefillConfig C> QN_DEVICE i32 find_page(const PrefillParams& p, const RowTile& at, i32 first) {
  if constexpr (C.places == KeyPlaces::contiguous) return 0;
  const i32 key = first + i32(threadIdx.x);
  if (i32(threadIdx.x) >= C.tile_tokens || key < at.begin || key >= at.end) return 0;
  const i32 page = ptx::ld_global<i32>(at.keys.pages + quotient(u32(key), p.page_size));
  return page >= 0 && page < p.rows_of_keys ? page : 0;
}
template <PrefillConfig C> QN_DEVICE void store_page(i32* pages, i32 page) {
  if constexpr (C.places != KeyPlaces::contiguous)
    if (i32(threadIdx.x) < C.tile_tokens) ptx::st_shared<u32>(pages + threadIdx.x, u32(page));
}

/// Starts the copies of keys (or values) first, first + 1, .. of a head. What no row sees becomes zeros: a probability of 0 times what
/// memory happens to hold could be NaN.
template <PrefillConfig C, int kWidth>
QN_DEVICE void copy_tile(const PrefillParams& p, const RowTile& at, const i32* pages, i32 first, const u8* head, i64 page_stride, i64 token_stride, u8* to) {
  QN_UNROLL
  for (u32 row = threadIdx.x / 8; row < u32(C.tile_tokens); row += C.threads / 8) {
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
    copy_row<dtype_t<C.kv_dtype>, dtype_t<C.dtype>, unit_bytes(C.kv_dtype, C.kv_bytes), kWidth>(to, row, from, read);
  }
}

/// What a warp holds: logits of its rows and a tile's keys, then sums of its part of v's columns.
template <PrefillConfig C> struct WarpRows {
  static constexpr int kColumns = C.head_dim_v / C.column_parts;
  SoftmaxState states[C.row_tiles][2];  // rows lane / 4 and + 8 of each MMA tile; each lane has the sum of its own columns
  f32 out[C.row_tiles][kColumns / 8][4];
};
template <PrefillConfig C> using Logits = f32[C.row_tiles][C.tile_tokens / 8][4];

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
    ptx::ldmatrix_x4_trans(v, values + chunk_offset<C.head_dim_v>(u32(16 * step) + lane / 8 % 2 * 8 + lane % 8, first + u32(2 * j) + lane / 16));
    QN_UNROLL
    for (int m = 0; m < C.row_tiles; ++m) {
      mma_k16<dtype_t<C.dtype>>(rows.out[m][2 * j], p[m], {v[0], v[1]});
      mma_k16<dtype_t<C.dtype>>(rows.out[m][2 * j + 1], p[m], {v[2], v[3]});
    }
  }
}

}  // namespace quern::attention
