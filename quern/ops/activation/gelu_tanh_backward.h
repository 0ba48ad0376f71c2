// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::activation {

struct GeluTanhBackwardArgs {
  TensorView dx;  ///< [tokens, intermediate] like x; may be dy itself
  TensorView dy;  ///< [tokens, intermediate] like x: the gradient of gelu_tanh's out
  TensorView x;   ///< [tokens, intermediate] f32, f16 or bf16
};

/// dx[t, i] = dy[t, i] * f'(x[t, i]), the gradient of gelu_tanh, in f32, rounded once:
///   f'(x) = s + x s (1 - s) z', s = 1 / (1 + exp(-z)), z = 2 sqrt(2 / pi) (x + 0.044715 x^3)
/// Rows may be strided. NaN stays NaN. Throws Error.
QN_API void gelu_tanh_backward(const GeluTanhBackwardArgs& args, const RunOptions& options = {});

}  // namespace quern::activation
