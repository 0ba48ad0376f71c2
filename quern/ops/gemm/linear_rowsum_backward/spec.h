// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/bricks/rows/spec.h"

namespace quern::gemm {

/// What an element of a row is made of. The values enter compile keys.
enum class Outer : i32 {
  scaled,    ///< scale[row] * values[column]
  repeated,  ///< values[column]
  filled,    ///< values[0]
};

struct LinearRowsumOuterConfig {
  DType dtype;  // of out
  DType scale_dtype;
  Outer outer;
  rows::RowChunks chunks;
  i32 threads;
};

struct LinearRowsumOuterParams {
  const void* scale;             // [rows] or null
  const float* values;           // [columns] or [1]
  void* out;                     // [rows, columns]
  i64 scale_stride, out_stride;  // elements from row to row
  i64 rows, columns;
};

}  // namespace quern::gemm
