// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::quant {

struct PerTokenGroupArgs {
  TensorView q;       ///< [m, k] e4m3 or e5m2
  TensorView scales;  ///< [m, ceil(k / 128)] f32, any strides: {1, round_up(m, 4)} is what the FP8 GEMM reads by TMA
  TensorView x;       ///< [m, k] bf16, f16 or f32
  bool power_of_two = false;  ///< scales are rounded up to powers of two (UE8M0)
};

/// Each row's groups of 128 columns get a scale of their own; the last group of a row may be shorter.
///   scales[i, g] = max(amax, 1e-4) / largest, amax the largest |x| of the group, largest 448 (e4m3) or 57344 (e5m2)
///   q[i, j] = x[i, j] * (1 / scales[i, j / 128]), rounded to nearest even
/// Each division and the product are rounded to f32, so bits are those of the same formulas in torch. A group of zeros has the scale
/// 1e-4 / largest; a NaN makes its group's scale and all of its q NaN; an infinity makes the scale infinite, q NaN there and 0 elsewhere.
/// What lies between the columns of `scales` is left alone. Throws Error.
QN_API void per_token_group(const PerTokenGroupArgs& args, const RunOptions& options = {});

}  // namespace quern::quant
