// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::norm {

struct FusedAddRmsNormArgs {
  TensorView out;           ///< [tokens, hidden] like x, which it then may be itself, or e4m3 with one kind of scale
  TensorView scales;        ///< [tokens, ceil(hidden / 128)] f32, any strides: of an out that is e4m3, a scale for each 128 columns
  TensorView token_scales;  ///< [tokens] f32: of an out that is e4m3, a scale for each row, in the place of scales
  TensorView residual;      ///< [tokens, hidden], updated in place: residual + x
  TensorView x;             ///< [tokens, hidden] f32, f16 or bf16
  TensorView weight;        ///< [hidden] like x, or f32
  TensorView static_scale;  ///< [1] f32, positive: of an out that is e4m3, the scale of all, in the place of scales
  float eps = 1e-6f;
  float weight_bias = 0.f;   ///< added to the weight: Gemma's is 1
  float amax_floor = 1e-4f;  ///< least largest magnitude of what shares an FP8 scale, from 1e-30 to 1e30
};

/// residual += x, then out = rms_norm(residual) * (weight + weight_bias), of the sum in f32 before it is rounded into residual.
/// The squares are summed in f32: a row whose sum of squares reaches 2^128 (one value of 1.8e19 is enough) gives zeros.
/// An out that is e4m3 is quantised from the unrounded result, as rms_norm does it; it must not overlap x.
/// With RunOptions::pdl, weight is read while kernels before in the stream may still run: it must be nothing that they write.
/// Throws Error.
QN_API void fused_add_rms_norm(const FusedAddRmsNormArgs& args, const RunOptions& options = {});

}  // namespace quern::norm
