// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The kernel for requests of many query rows, which attention.ragged and attention.paged share: prefill_mma.
#pragma once
#include "quern/kit/abi.h"
#include "quern/ops/attention/hooks_spec.h"

namespace quern::attention {

/// Where the keys of a request lie. The values enter compile keys.
enum class KeyPlaces : i32 {
  contiguous,    ///< rows kv_indptr[b] .. of one tensor
  page_table,    ///< pages of a row of a dense table
  page_indices,  ///< pages of a CSR table
};

struct PrefillConfig {
  DType dtype;          // of both products: f16 or bf16
  DType q_dtype;        // dtype, or e4m3 or e5m2 beside f16
  DType kv_dtype;       // dtype, or e4m3 or e5m2
  DType out_dtype;
  DType lens_dtype;     // of seq_lens: i32 or i64
  i32 head_dim;         // of q and k: a multiple of 16
  i32 head_dim_v;       // a multiple of 16
  i32 row_tiles;        // MMA tiles of 16 rows of a warp: 1 or 2
  i32 column_parts;     // warps that share rows; each sums a part of v's columns
  i32 tile_tokens;      // keys of a tile: 16, 32 or 64
  i32 q_bytes;          // bytes of one access to q: 16, 8, 4, 2 or 1
  i32 kv_bytes;         // the same of k and v
  i32 soft_cap;         // 1: logit = cap * tanh(logit / cap)
  i32 bits;             // 1: a packed mask
  KeyPlaces places;
  i32 leave_few_rows;   // 1: requests of few rows (few_rows) are another kernel's
  i32 threads;
  i32 min_blocks;
};

/// Whether a request of `queries` query tokens, `group` query heads a KV head, is summed by the kernel for few rows.
constexpr i32 kFewRows = 16;
QN_HOST_DEVICE constexpr bool has_few_rows(i64 queries, i64 group) { return queries == 1 || queries * group <= kFewRows; }

/// A scale for each request and KV head, or query token and head. Strides are elements; 0 where one serves all.
struct ScaleTensor {
  const float* data;  // null: 1
  i64 strides[2];
};

/// Strides of q, k, v and out are bytes, all others elements.
struct PrefillParams {
  void* out;                 // [tokens, heads_q, head_dim_v]
  float* out_lse;            // [tokens, heads_q] or null
  const u8* q;               // [tokens, heads_q, head_dim]
  const u8* k;               // [tokens_kv, heads_kv, head_dim], or [pages, page_size, heads_kv, head_dim]
  const u8* v;
  const i32* q_indptr;       // [batch + 1]; null: request b has query token b alone
  const i32* kv_indptr;      // [batch + 1]: of contiguous keys, or of page_indices
  const void* seq_lens;      // [batch], of a dense page table
  const i32* pages;          // [batch, max_pages] or [page_indices]
  const i32* last_page_len;  // [batch], of page_indices
  const void* sink;          // [heads_q] or null
  const u8* mask;            // bits
  const i32* mask_indptr;    // [batch + 1], bytes
  ScaleTensor q_scale;       // [tokens, heads_q]
  ScaleTensor k_scale;       // [batch, heads_kv]
  ScaleTensor v_scale;       // [batch, heads_kv]
  i64 q_token, q_head, out_token, out_head;
  i64 k_page, k_token, k_head, v_page, v_token, v_head;
  i64 lse_token, lse_head, table_row;
  i64 batch, tokens, mask_bytes;
  i64 rows_of_keys;          // of k and v: contiguous keys, or pages
  i64 row_tiles;             // upper bound of row tiles of all requests
  i32 heads_kv;
  i32 capacity;              // most keys of a request that are read
  i32 window_left, window_right;  // kNoWindow: no bound. Causal attention is a window_right of 0
  i32 out_pairs;             // 1: every row of out starts at a multiple of two elements
  DType sink_dtype;
  float scale;               // of logits, natural units; with a soft cap divided by it
  float soft_cap;
  float out_scale;
  float lse_factor;          // 1, or ln 2: out_lse in natural units
  Divisor page_size;
  Divisor group;             // heads_q / heads_kv
  alignas(8) u8 hook_params[kHookParamBytes];
  HookTensor hook_tensors[kHookTensors];
};

/// A window without a bound: beyond every length.
constexpr i32 kNoWindow = 1 << 30;

/// Rows of a block's tile, query tokens times heads of a group.
QN_HOST_DEVICE constexpr i32 block_rows(const PrefillConfig& c) { return c.threads / 32 / c.column_parts * 16 * c.row_tiles; }

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
