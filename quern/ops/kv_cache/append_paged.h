// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::kv_cache {

struct AppendPagedArgs {
  TensorView k_cache;        ///< [pages, page_size, heads_kv, head_dim], written where tokens are appended
  TensorView v_cache;        ///< [pages, page_size, heads_kv, head_dim], of the same dtype
  TensorView k;              ///< [tokens, heads_kv, head_dim] of the caches' dtype, or f32, f16 or bf16 beside caches of e4m3 or e5m2
  TensorView v;              ///< [tokens, heads_kv, head_dim] of k's dtype
  TensorView batch_indices;  ///< [tokens] i32 or i64: the request of each token; negative: the token is skipped
  TensorView positions;      ///< [tokens] of the same dtype: its place in the request
  TensorView page_table;     ///< [batch, max_pages] i32, or absent
  TensorView page_indptr;    ///< [batch + 1] i32, or absent: pages of request b are page_indices[page_indptr[b] ...]
  TensorView page_indices;   ///< [page_indices] i32
  TensorView
      slot_mapping;    ///< [tokens] i32 or i64, in the place of the five before: page * page_size + offset; negative: the token is skipped
  TensorView k_scale;  ///< optional [1] or [heads_kv] f32: what FP8 caches hold is k / k_scale; absent: k
  TensorView v_scale;  ///< the same of v
};

/// cache[page, offset] = row, for each token of k and v. Its place is a slot, page * page_size + offset = slot_mapping[t], or follows from
/// a page table: page = page(b, p / page_size), offset = p % page_size, b = batch_indices[t], p = positions[t]. The table is dense
/// (page_table) or CSR (page_indptr and page_indices). The caches are strided, so NHD, HND and combined layouts are views. Rows of the
/// caches' dtype are copied bit by bit. Of FP8 caches beside wider rows, an element is x / scale in f32, rounded to nearest even and cut to
/// the largest number of the dtype; NaN stays NaN.
/// Tokens that point outside the page table or the cache are skipped, as are negative requests and slots;
/// of these checked emulated devices report all but the negative requests and slots. Two tokens of one place are a race. Throws Error.
QN_API void append_paged(const AppendPagedArgs& args, const RunOptions& options = {});

}  // namespace quern::kv_cache
