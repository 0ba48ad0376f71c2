// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The rows' part of linear_rowsum: dot products with the column sums.
#pragma once
#include "quern/bricks/rows/spec.h"

namespace quern::gemm {

struct LinearRowsumConfig {
  DType dtype;
  DType out_dtype;  // f32 where sums are parts
  i32 with_bias;
  rows::RowDots dots;
  i32 threads;
};

struct LinearRowsumParams {
  const void* a;             // [m, k]
  const float* column_sums;  // [k]
  const float* bias_sum;     // [1] or null
  void* out;                 // [m], or [chunks, part_stride] where a row is several chunks
  i64 a_stride;              // elements from row to row
  i64 part_stride;           // from chunk to chunk
  i64 m, k;
};

}  // namespace quern::gemm
