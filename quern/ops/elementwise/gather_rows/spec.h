// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/bricks/rows/spec.h"

namespace quern::elementwise {

struct GatherRowsConfig {
  DType dtype;        // u8: rows are copied, whatever their dtype
  DType index_dtype;  // i32 or i64
  rows::RowChunks chunks;
  i32 threads;
};

struct GatherRowsParams {
  const void* table;             // [rows, columns]
  const void* ids;               // [tokens]
  void* out;                     // [tokens, columns]
  i64 table_stride, out_stride;  // elements; bytes where dtype is u8
  i64 rows, tokens, columns;     // bytes where dtype is u8
  float scale;
  i32 unused;
};

}  // namespace quern::elementwise
