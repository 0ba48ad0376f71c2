// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/bricks/rows/spec.h"

namespace quern::kv_cache {

struct CopyPagesConfig {
  DType index_dtype;       // i32 or i64
  i32 bytes;               // of one access; divides a head's row
  i32 both;                // 1: k and v; 0: k alone
  rows::RowChunks chunks;  // of accesses: vector is 1
  i32 threads;
};

/// A cache as the kernel walks over a page: rows of a head, `inner` of which follow each other, and so on for each of `outer`. Strides in
/// bytes.
struct CopyPagesCache {
  char* data;  // [pages, page_size, heads_kv, head_dim]
  i64 page_stride, outer_stride, inner_stride;
};

struct CopyPagesParams {
  CopyPagesCache k, v;
  const void* src_pages;  // [copies]
  const void* dst_pages;  // [copies]
  i64 copies, pages;
  i64 page_accesses;     // of one page
  Divisor row_accesses;  // of a head's row
  Divisor inner;         // slots or heads, whichever lie closer together
};

}  // namespace quern::kv_cache
