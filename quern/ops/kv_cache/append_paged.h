// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::kv_cache {

struct AppendPagedArgs {
  TensorView k_cache;        ///< [pages, page_size, heads_kv, head_dim], written where tokens are appended
  TensorView v_cache;        ///< [pages, page_size, heads_kv, head_dim]
  TensorView k;              ///< [tokens, heads_kv, head_dim], any dtype; the caches have the same
  TensorView v;              ///< [tokens, heads_kv, head_dim]
  TensorView batch_indices;  ///< [tokens] i32: the request of each token; negative: the token is skipped
  TensorView positions;      ///< [tokens] i32: its place in the request
  TensorView page_table;     ///< [batch, max_pages] i32, or absent
  TensorView page_indptr;    ///< [batch + 1] i32, or absent: pages of request b are page_indices[page_indptr[b] ...]
  TensorView page_indices;   ///< [page_indices] i32
};

/// cache[page(b, p / page_size), p % page_size] = row, for token (b, p) of k and v: b = batch_indices[t], p = positions[t].
/// The page table is dense (page_table) or CSR (page_indptr and page_indices). The caches are strided, so NHD, HND and
/// combined layouts are views. Tokens that point outside the page table or the cache are skipped, as are negative requests;
/// of these checked emulated devices report all but the negative requests. Two tokens of one place are a race. Throws Error.
QN_API void append_paged(const AppendPagedArgs& args, const RunOptions& options = {});

}  // namespace quern::kv_cache
