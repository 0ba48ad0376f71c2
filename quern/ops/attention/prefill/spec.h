// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The kernel for requests of many query rows, which attention.ragged and attention.paged share: prefill_mma.
#pragma once
#include "quern/ops/attention/attend_spec.h"

namespace quern::attention {

struct PrefillConfig {
  DType dtype;     // of both products: f16 or bf16
  DType q_dtype;   // dtype, or e4m3 or e5m2 beside f16
  DType kv_dtype;  // dtype, or e4m3 or e5m2
  DType out_dtype;
  DType lens_dtype;  // of seq_lens: i32 or i64
  i32 head_dim;      // of q and k: a multiple of 16
  i32 head_dim_v;    // a multiple of 16
  i32 row_tiles;     // MMA tiles of 16 rows of a warp: 1 or 2
  i32 column_parts;  // warps that share rows; each sums a part of v's columns
  i32 tile_tokens;   // keys of a tile: 16, 32 or 64
  i32 copy_bytes;    // bytes of one access to k and v: 16, 8, 4, 2 or 1
  i32 soft_cap;      // 1: logit = cap * tanh(logit / cap)
  i32 bits;          // 1: a packed mask
  KeyPlaces places;
  i32 leave_few_rows;  // requests of so many rows (has_few_rows) are another kernel's; 0: none
  i32 threads;
  i32 min_blocks;
};

struct PrefillParams : AttendParams {
  i64 row_tiles;  // upper bound of row tiles of all requests
};

/// Rows of a block's tile, query tokens times heads of a group.
QN_HOST_DEVICE constexpr i32 block_rows(const PrefillConfig& c) { return c.threads / 32 / c.column_parts * 16 * c.row_tiles; }

QN_HOST_DEVICE constexpr bool has_row_factors(const PrefillConfig&) { return false; }

struct PrefillSmem {
  int scan, pages, queries, keys, values, bytes;
};
/// Page entries of two tiles; q, K and V as rows of 16-bit elements without padding, their 16-byte chunks exchanged (tile_rows.cuh).
QN_HOST_DEVICE constexpr PrefillSmem prefill_smem(const PrefillConfig& c) {
  const int pages = 64;
  const int queries = round_up(pages + 2 * c.tile_tokens * 4, 128);
  const int keys = queries + block_rows(c) * c.head_dim * 2;
  const int values = keys + c.tile_tokens * c.head_dim * 2;
  return {0, pages, queries, keys, values, values + c.tile_tokens * c.head_dim_v * 2};
}

}  // namespace quern::attention
