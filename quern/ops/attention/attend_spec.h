// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the kernels of attention.ragged and attention.paged share: how a call's tensors are told to them.
#pragma once
#include "quern/ops/attention/hooks_spec.h"

namespace quern::attention {

/// Where the keys of a request lie. The values enter compile keys.
enum class KeyPlaces : i32 {
  contiguous,    ///< rows kv_indptr[b] .. of one tensor
  page_table,    ///< pages of a row of a dense table
  page_indices,  ///< pages of a CSR table
};

/// Whether a request of `queries` query tokens, `group` query heads a KV head, is summed by a kernel for few rows, which takes up to
/// `most`.
QN_HOST_DEVICE constexpr bool has_few_rows(i64 queries, i64 group, i32 most) { return queries == 1 || queries * group <= most; }

/// A scale for each request and KV head, or query token and head. Strides are elements; 0 where one serves all.
struct ScaleTensor {
  const float* data;  // null: 1
  i64 strides[2];
};

/// A window without a bound: beyond every length.
constexpr i32 kNoWindow = 1 << 30;

/// What the family's kernels are told of a call. Strides of q, k, v and out are bytes, all others elements.
struct AttendParams {
  void* out;       // [tokens, heads_q, head_dim_v]
  float* out_lse;  // [tokens, heads_q] or null
  const u8* q;     // [tokens, heads_q, head_dim]
  const u8* k;     // [tokens_kv, heads_kv, head_dim], or [pages, page_size, heads_kv, head_dim]
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
  i64 lse_token, lse_head;
  i64 table_row;  // of page_table; of page_indices: how many there are
  i64 batch, tokens, mask_bytes;
  i64 rows_of_keys;  // of k and v: contiguous keys, or pages
  u32 last_page;     // entries of the table beyond it, and negative ones, become it
  i32 heads_kv;
  i32 capacity;                   // most keys of a request that are read
  i32 window_left, window_right;  // kNoWindow: no bound. Causal attention is a window_right of 0
  i32 q_wide;                     // 1: every row of q starts at a multiple of 16 bytes
  i32 out_pairs;                  // 1: every row of out starts at a multiple of two elements
  i32 out_wide;                   // 1: every row of out starts at a multiple of 16 bytes
  DType sink_dtype;
  float scale;  // of logits, natural units; with a soft cap divided by it
  float soft_cap;
  float out_scale;
  float lse_factor;  // 1, or ln 2: out_lse in natural units
  Divisor page_size;
  Divisor group;  // heads_q / heads_kv
  alignas(8) u8 hook_params[kHookParamBytes];
  HookTensor hook_tensors[kHookTensors];
};

}  // namespace quern::attention
