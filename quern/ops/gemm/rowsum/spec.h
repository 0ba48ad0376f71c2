// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Sums over the rows of a matrix, in parts, and of a vector: for linear_rowsum and its gradients.
#pragma once
#include "quern/kit/abi.h"

namespace quern::gemm {

/// Rows of a part: each of the block's 8 warps has 8, all loaded before the first is added.
constexpr int kPartRows = 64;

struct ColumnSumsConfig {
  DType dtype;  // of the matrix
  DType vector_dtype;
  i32 weighted;  // 1: each row is multiplied by its element of the vector
  i32 vector;    // elements of one access; divides the columns
  i32 threads;
};

struct ColumnSumsParams {
  const void* matrix;  // [rows, columns]
  const void* vector;  // [elements], of the weights [rows]; or null
  void* parts;         // [ceil(rows / 64), part_stride] f32
  float* vector_sum;   // [1]: where the grid has a block more than `chunks`
  i64 row_stride, vector_stride, part_stride;
  i64 rows, columns, elements;
  i64 chunks;  // blocks that make parts
};

/// Columns of a block: a warp has an access a lane.
QN_HOST_DEVICE constexpr int column_sums_columns(const ColumnSumsConfig& c) { return 32 * c.vector; }
/// The warps' sums; and a value a warp for the sum of the vector.
QN_HOST_DEVICE constexpr int column_sums_smem(const ColumnSumsConfig& c) { return c.threads / 32 * column_sums_columns(c) * 4; }

}  // namespace quern::gemm
