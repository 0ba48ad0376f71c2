// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::quant {

struct PerTokenGroupArgs {
  TensorView q;       ///< [m, k] e4m3, e5m2 or i8
  TensorView scales;  ///< [m, ceil(k / group_size)] f32, or u8 that holds E8M0; any strides: {1, round_up(m, 4)} of f32 is what the FP8
                      ///< GEMM reads by TMA
  TensorView x;       ///< [m, k] bf16, f16 or f32
  bool power_of_two = false;  ///< scales are rounded up to powers of two (UE8M0); scales in E8M0 always are
  i32 group_size = 128;       ///< 32, 64 or 128
  float amax_floor = 1e-4f;   ///< least largest magnitude of a group, from 1e-30 to 1e30
};

/// Each row's groups of group_size columns get a scale of their own; the last group of a row may be shorter.
///   scales[i, g] = max(amax, amax_floor) / largest, amax the largest |x| of the group, largest 448 (e4m3), 57344 (e5m2) or 127 (i8)
///   q[i, j] = x[i, j] * (1 / scales[i, j / group_size]), rounded to nearest even and cut to +-largest
/// Each division and the product are rounded to f32, so bits are those of the same formulas in torch. A group of zeros has the scale
/// amax_floor / largest; a NaN makes its group's scale and all of its q NaN; an infinity makes the scale infinite, q NaN there and 0
/// elsewhere. In i8 a q that would be NaN is 0. A scale in E8M0 is the byte e of the power of two 2^(e - 127), rounded up as power_of_two
/// does it; one that is infinite or NaN is 255. What lies between the columns of `scales` is left alone. Throws Error: for a group_size or
/// amax_floor that is none of these, and for tensors of other shapes or dtypes.
QN_API void per_token_group(const PerTokenGroupArgs& args, const RunOptions& options = {});

}  // namespace quern::quant
