// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::gemm {

struct ScaledArgs {
  TensorView out;       ///< [m, n] bf16 or f32; may be c itself
  TensorView a;         ///< [m, k] e4m3 or e5m2
  TensorView scales_a;  ///< f32 [m or 1, ceil(k / 128) or 1], any strides
  TensorView b;         ///< [n, k] e4m3 or e5m2, whatever a is; a weight as frameworks store it
  TensorView scales_b;  ///< f32 [n, ceil(n / 128) or 1, ceil(k / 128) or 1], any strides
  TensorView c;         ///< [m, n] bf16 or f32; absent: none
  TensorView bias;      ///< [n] bf16 or f32; absent: none
};

/// out[i, j] = sum_x scales_a(i, x) * scales_b(j, x) * a[i, x] * b[j, x] + bias[j] + c[i, j], summed in f32, rounded once. On Hopper
/// the tensor cores keep 13 bits behind the largest of 33 addends, 32 products and the sum so far: off by up to 2^-11 / sqrt(max(1, k /
/// 128)) of the magnitude, as far as was seen (the family's README). A column of scales is for 128 columns of a or b, or for all of them; a
/// row of scales is for one row, for 128 (of b alone), or for all: their shapes tell. Rows of a, b, c and out may be strided and aligned to
/// any element; m, n, k are arbitrary (k = 0 gives the bias and c, or zeros). Results are the same on every run; with
/// RunOptions::batch_invariant a row's bits depend neither on the other rows nor on how many there are. With RunOptions::pdl, b and its
/// scales are read while the kernel before in the stream may still run: they must be nothing that one writes. Throws Error.
QN_API void scaled(const ScaledArgs& args, const RunOptions& options = {});

}  // namespace quern::gemm
