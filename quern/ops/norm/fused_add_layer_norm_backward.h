// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::norm {

struct FusedAddLayerNormBackwardArgs {
  TensorView dx;         ///< [tokens, hidden]: the gradient of x, and of residual before the forward op; may be dresidual itself
  TensorView dw;         ///< optional [hidden], of the weight's dtype or f32
  TensorView dbias;      ///< optional [hidden], of the weight's dtype or f32, and of dw's
  TensorView dy;         ///< [tokens, hidden] f32, f16 or bf16: the gradient of the forward op's out
  TensorView residual;   ///< [tokens, hidden] like dy: the sum, as the forward op left it
  TensorView weight;     ///< optional [hidden] like dy, or f32; absent: 1
  TensorView dresidual;  ///< [tokens, hidden] like dy: the gradient of residual behind the forward op
  float eps = 1e-5f;
};

/// Gradients of fused_add_layer_norm, of which x and residual have the same: those of layer_norm_backward at x = residual, and dresidual is
/// added to dx. residual is the sum as it was rounded, which the forward op normalised unrounded. Else as layer_norm_backward. Throws
/// Error.
QN_API void fused_add_layer_norm_backward(const FusedAddLayerNormBackwardArgs& args, const RunOptions& options = {});

}  // namespace quern::norm
