// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::norm {

struct RmsNormBackwardArgs {
  TensorView dx;      ///< [tokens, hidden]; may be dy itself
  TensorView dw;      ///< optional [hidden], of the weight's dtype or f32
  TensorView dy;      ///< [tokens, hidden] f32, f16 or bf16: the gradient of rms_norm's out
  TensorView x;       ///< [tokens, hidden] like dy
  TensorView weight;  ///< [hidden] like dy, or f32
  float eps = 1e-6f;
  float weight_bias = 0.f;  ///< as rms_norm adds it to the weight
};

/// Gradients of rms_norm: with r[t] = 1 / sqrt(mean_h(x[t, h]^2) + eps) and g = dy * (weight + weight_bias),
///   dx[t, h] = r[t] * (g[t, h] - x[t, h] * r[t]^2 * mean_h(g[t] * x[t]))
///   dw[h] = sum_t dy[t, h] * x[t, h] * r[t]
/// in f32, each rounded once. dw is summed in a fixed order: the same bits on every call; sums of parts pass through the workspace.
/// Rows may be strided; hidden and tokens are arbitrary; dw of no tokens is 0. A row of dx does not depend on the other rows.
/// Throws Error.
QN_API void rms_norm_backward(const RmsNormBackwardArgs& args, const RunOptions& options = {});

}  // namespace quern::norm
