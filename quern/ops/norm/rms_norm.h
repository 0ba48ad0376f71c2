// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::norm {

struct RmsNormArgs {
  TensorView out;           ///< [tokens, hidden] like x, which it then may be itself, or e4m3 with one kind of scale
  TensorView scales;        ///< [tokens, ceil(hidden / 128)] f32, any strides: of an out that is e4m3, a scale for each 128 columns
  TensorView token_scales;  ///< [tokens] f32: of an out that is e4m3, a scale for each row, in the place of scales
  TensorView x;             ///< [tokens, hidden] f32, f16 or bf16
  TensorView weight;        ///< [hidden] like x, or f32
  TensorView static_scale;  ///< [1] f32, positive: of an out that is e4m3, the scale of all, in the place of the two above
  float eps = 1e-6f;
  float weight_bias = 0.f;   ///< added to the weight: Gemma's is 1
  float amax_floor = 1e-4f;  ///< least largest magnitude of what shares an FP8 scale, from 1e-30 to 1e30
};

/// out[t, h] = x[t, h] / sqrt(mean_h(x[t]^2) + eps) * (weight[h] + weight_bias), in f32, rounded once.
/// The squares are summed in f32: a row whose sum of squares reaches 2^128 (one value of 1.8e19 is enough) gives zeros.
/// Rows may be strided; hidden and tokens are arbitrary. A row's bits do not depend on the other rows.
/// An out that is e4m3 is quantised from the unrounded result y: q = y * (1 / scale), rounded to nearest even and cut to the largest
/// number. Computed scales are max(max |y|, amax_floor) / 448 over what shares one. Heads of tokens: rms_norm_heads, which also takes no
/// weight. Zhang and Sennrich, Root Mean Square Layer Normalization (arXiv 1910.07467). Throws Error.
QN_API void rms_norm(const RmsNormArgs& args, const RunOptions& options = {});

}  // namespace quern::norm
