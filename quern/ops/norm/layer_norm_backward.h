// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::norm {

struct LayerNormBackwardArgs {
  TensorView dx;      ///< [tokens, hidden]; may be dy itself
  TensorView dw;      ///< optional [hidden], of the weight's dtype or f32
  TensorView dbias;   ///< optional [hidden], of the weight's dtype or f32, and of dw's
  TensorView dy;      ///< [tokens, hidden] f32, f16 or bf16: the gradient of layer_norm's out
  TensorView x;       ///< [tokens, hidden] like dy
  TensorView weight;  ///< optional [hidden] like dy, or f32; absent: 1
  float eps = 1e-5f;
};

/// Gradients of layer_norm: with m[t] = mean_h(x[t]), r[t] = 1 / sqrt(mean_h((x[t] - m[t])^2) + eps), n = (x - m) * r and g = dy * weight,
///   dx[t, h] = r[t] * (g[t, h] - mean_h(g[t]) - n[t, h] * mean_h(g[t] * n[t]))
///   dw[h] = sum_t dy[t, h] * n[t, h]
///   dbias[h] = sum_t dy[t, h]
/// in f32, each rounded once. The mean is taken first, then the squares of what is centred, as layer_norm does it. dw and dbias are summed
/// in a fixed order: the same bits on every call; sums of parts pass through the workspace. Rows may be strided; hidden and tokens are
/// arbitrary; dw and dbias of no tokens are 0. A row of dx does not depend on the other rows. Throws Error.
QN_API void layer_norm_backward(const LayerNormBackwardArgs& args, const RunOptions& options = {});

}  // namespace quern::norm
