// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/abi.h"

namespace quern::kv_cache {

struct AppendPagedConfig {
  i32 access_bytes;  // 1 to 16
  i32 csr;           // 1: page_indptr and page_indices; 0: a dense page table
  i32 threads;
};

/// Strides in bytes.
struct AppendPagedParams {
  const char* k;             // [tokens, heads_kv, head_dim]
  const char* v;             // [tokens, heads_kv, head_dim]
  char* k_cache;             // [pages, page_size, heads_kv, head_dim]
  char* v_cache;             // [pages, page_size, heads_kv, head_dim]
  const i32* batch_indices;  // [tokens]
  const i32* positions;      // [tokens]
  const i32* page_table;     // [batch, max_pages], or [page_indices]
  const i32* page_indptr;    // [batch + 1] or null
  i64 k_token_stride, k_head_stride, v_token_stride, v_head_stride;
  i64 k_page_stride, k_slot_stride, k_cache_head_stride;
  i64 v_page_stride, v_slot_stride, v_cache_head_stride;
  i64 page_table_stride;     // elements
  i64 tokens, pages, batch, max_pages;  // CSR: max_pages is the length of page_indices
  i32 page_size, heads_kv;
  i32 head_accesses;         // of one head's row
  i32 unused;
};

}  // namespace quern::kv_cache
