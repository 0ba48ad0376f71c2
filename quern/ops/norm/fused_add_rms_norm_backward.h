// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::norm {

struct FusedAddRmsNormBackwardArgs {
  TensorView dx;         ///< [tokens, hidden]: the gradient of x, and of residual before the forward op; may be dresidual itself
  TensorView dw;         ///< optional [hidden], of the weight's dtype or f32
  TensorView dy;         ///< [tokens, hidden] f32, f16 or bf16: the gradient of the forward op's out
  TensorView residual;   ///< [tokens, hidden] like dy: the sum, as the forward op left it
  TensorView weight;     ///< [hidden] like dy, or f32
  TensorView dresidual;  ///< [tokens, hidden] like dy: the gradient of residual behind the forward op
  float eps = 1e-6f;
  float weight_bias = 0.f;  ///< as the forward op adds it to the weight
};

/// Gradients of fused_add_rms_norm, of which x and residual have the same: with s = residual, r[t] = 1 / sqrt(mean_h(s[t, h]^2) + eps) and
/// g = dy * (weight + weight_bias),
///   dx[t, h] = r[t] * (g[t, h] - s[t, h] * r[t]^2 * mean_h(g[t] * s[t])) + dresidual[t, h]
///   dw[h] = sum_t dy[t, h] * s[t, h] * r[t]
/// in f32, each rounded once. s is the sum as it was rounded into residual, which the forward op normalised unrounded. Else as
/// rms_norm_backward. Throws Error.
QN_API void fused_add_rms_norm_backward(const FusedAddRmsNormBackwardArgs& args, const RunOptions& options = {});

}  // namespace quern::norm
