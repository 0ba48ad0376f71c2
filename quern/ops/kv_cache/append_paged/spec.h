// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/abi.h"

namespace quern::kv_cache {

/// How a call tells where a token goes.
enum class Places : i32 {
  page_table,    ///< batch_indices, positions and a dense page table
  page_indices,  ///< batch_indices, positions, page_indptr and page_indices
  slot_mapping,
};

struct AppendPagedConfig {
  DType dtype, cache_dtype;  // u8 and u8: rows are copied, whatever their dtype
  i32 vector;                // elements of one access
  Places places;
  DType index_dtype;         // i32 or i64, of batch_indices and positions, or of slot_mapping
  i32 threads;
};

/// Strides in bytes.
struct AppendPagedParams {
  const char* k;             // [tokens, heads_kv, head_dim]
  const char* v;             // [tokens, heads_kv, head_dim]
  char* k_cache;             // [pages, page_size, heads_kv, head_dim]
  char* v_cache;             // [pages, page_size, heads_kv, head_dim]
  const void* batch_indices; // [tokens], or slot_mapping
  const void* positions;     // [tokens] or null
  const i32* page_table;     // [batch, max_pages], or [page_indices], or null
  const i32* page_indptr;    // [batch + 1] or null
  const float* k_scale;      // of each head or of all, or null: 1
  const float* v_scale;
  i64 k_token_stride, k_head_stride, v_token_stride, v_head_stride;
  i64 k_page_stride, k_slot_stride, k_cache_head_stride;
  i64 v_page_stride, v_slot_stride, v_cache_head_stride;
  i64 page_table_stride;     // elements
  i64 k_scale_stride, v_scale_stride;   // elements; 0: one scale for all heads
  i64 tokens, pages, batch, max_pages;  // CSR: max_pages is the length of page_indices
  i32 page_size, heads_kv;
  i32 head_accesses;         // of one head's row
  i32 unused;
};

}  // namespace quern::kv_cache
