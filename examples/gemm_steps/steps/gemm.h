// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::steps {

struct GemmArgs {
  TensorView out;  ///< [m, n], like a
  TensorView a;    ///< [m, k] bf16 or f16
  TensorView b;    ///< [n, k], like a: a weight as frameworks store it
};

/// out[i, j] = sum_x a[i, x] b[j, x], summed in f32, rounded once. Throws Error.
QN_API void gemm(const GemmArgs& args, const RunOptions& options = {});

}  // namespace quern::steps
