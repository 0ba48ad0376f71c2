// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::gemm {

struct LinearRowsumArgs {
  TensorView out;          ///< [m] of a's dtype or f32
  TensorView column_sums;  ///< [k] f32: sum_j b[j, x], which linear_rowsum_backward reads
  TensorView a;            ///< [m, k] f32, f16 or bf16
  TensorView b;            ///< [n, k] like a: the weight of a linear layer
  TensorView bias;         ///< optional [n] like a, or f32, of any stride; absent: 0
};

/// The row sums of a linear layer, sum_j (a b^T + bias)[i, j], without the product of matrices:
///   column_sums[x] = sum_j b[j, x]
///   out[i] = sum_x a[i, x] * column_sums[x] + sum_j bias[j]
/// in f32, out rounded once. a and b are read once. All sums have a fixed order, which depends on dtype, n and k alone: the same bits on
/// every call, and for a row alone and in any batch. Sums of parts pass through the workspace. Rows may be strided; extents are arbitrary.
/// Throws Error.
QN_API void linear_rowsum(const LinearRowsumArgs& args, const RunOptions& options = {});

}  // namespace quern::gemm
