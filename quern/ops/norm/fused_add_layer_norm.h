// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::norm {

struct FusedAddLayerNormArgs {
  TensorView out;           ///< [tokens, hidden] like x, which it then may be itself, or e4m3 with one kind of scale
  TensorView scales;        ///< [tokens, ceil(hidden / 128)] f32, any strides: of an out that is e4m3, a scale for each 128 columns
  TensorView token_scales;  ///< [tokens] f32: of an out that is e4m3, a scale for each row, in the place of scales
  TensorView residual;      ///< [tokens, hidden], updated in place: residual + x
  TensorView x;             ///< [tokens, hidden] f32, f16 or bf16
  TensorView weight;        ///< optional [hidden] like x, or f32; absent: 1
  TensorView bias;          ///< optional [hidden] of the weight's dtype; absent: 0
  TensorView static_scale;  ///< [1] f32, positive: of an out that is e4m3, the scale of all, in the place of the two above
  float eps = 1e-5f;
  float amax_floor = 1e-4f;  ///< least largest magnitude of what shares an FP8 scale, from 1e-30 to 1e30
};

/// residual += x, then out = layer_norm(residual), of the sum in f32 before it is rounded into residual.
/// The mean is taken first, then the mean of the centred squares: no difference of large numbers. Rows may be strided; a row's bits do not
/// depend on the other rows. An out that is e4m3 is quantised from the unrounded result, as rms_norm does it. Ba et al., Layer
/// Normalization (arXiv 1607.06450). Throws Error.
QN_API void fused_add_layer_norm(const FusedAddLayerNormArgs& args, const RunOptions& options = {});

}  // namespace quern::norm
