// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::quant {

struct PerBlockArgs {
  TensorView q;               ///< [n, k] e4m3 or e5m2
  TensorView scales;          ///< [ceil(n / 128), ceil(k / 128)] f32, any strides
  TensorView x;               ///< [n, k] bf16, f16 or f32
  bool power_of_two = false;  ///< scales are rounded up to powers of two (UE8M0)
  float amax_floor = 1e-4f;   ///< least largest magnitude of a block, from 1e-30 to 1e30
};

/// Each block of 128 x 128 elements gets a scale of its own, as weights have them; blocks at the edges may be smaller.
///   scales[b, c] = max(amax, amax_floor) / largest, amax the largest |x| of the block, largest 448 (e4m3) or 57344 (e5m2)
///   q[i, j] = x[i, j] * (1 / scales[i / 128, j / 128]), rounded to nearest even
/// Roundings, zeros, NaN and infinities are as in per_token_group. Throws Error.
QN_API void per_block(const PerBlockArgs& args, const RunOptions& options = {});

}  // namespace quern::quant
