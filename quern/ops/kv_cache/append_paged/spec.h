// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/bricks/paged/spec.h"

namespace quern::kv_cache {

struct AppendPagedConfig {
  DType dtype, cache_dtype;  // u8 and u8: rows are copied, whatever their dtype
  i32 vector;                // elements of one access
  paged::Places places;
  DType index_dtype;  // i32 or i64, of batch_indices and positions, or of slot_mapping
  i32 threads;
};

/// Strides in bytes.
struct AppendPagedParams {
  const char* k;  // [tokens, heads_kv, head_dim]
  const char* v;  // [tokens, heads_kv, head_dim]
  char* k_cache;  // [pages, page_size, heads_kv, head_dim]
  char* v_cache;  // [pages, page_size, heads_kv, head_dim]
  paged::PlaceParams place;
  const float* k_scale;  // of each head or of all, or null: 1
  const float* v_scale;
  i64 k_token_stride, k_head_stride, v_token_stride, v_head_stride;
  i64 k_page_stride, k_slot_stride, k_cache_head_stride;
  i64 v_page_stride, v_slot_stride, v_cache_head_stride;
  i64 k_scale_stride, v_scale_stride;  // elements; 0: one scale for all heads
  i64 tokens;
  i32 heads_kv;
  i32 head_accesses;  // of one head's row
};

}  // namespace quern::kv_cache
