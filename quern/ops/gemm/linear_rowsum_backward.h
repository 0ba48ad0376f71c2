// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::gemm {

struct LinearRowsumBackwardArgs {
  TensorView da;           ///< optional [m, k] like a
  TensorView db;           ///< optional [n, k] like a, or f32
  TensorView dbias;        ///< optional [n] like a, or f32
  TensorView dy;           ///< [m] f32, f16 or bf16, of any stride: the gradient of linear_rowsum's out
  TensorView a;            ///< [m, k] f32, f16 or bf16
  TensorView b;            ///< [n, k] like a; read where column_sums are absent, for da
  TensorView column_sums;  ///< optional [k] f32, as linear_rowsum wrote them; absent: computed of b
};

/// Gradients of linear_rowsum, one or more:
///   da[i, x] = dy[i] * column_sums[x], column_sums[x] = sum_j b[j, x]
///   db[j, x] = sum_i dy[i] * a[i, x] for every j: db has rank one by construction
///   dbias[j] = sum_i dy[i] for every j
/// in f32, each rounded once. a is read once. Sums have a fixed order, which depends on dtype and extents alone: the same bits on every
/// call. Rows may be strided; extents are arbitrary. Throws Error.
QN_API void linear_rowsum_backward(const LinearRowsumBackwardArgs& args, const RunOptions& options = {});

}  // namespace quern::gemm
