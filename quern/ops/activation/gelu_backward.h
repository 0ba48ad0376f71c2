// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::activation {

struct GeluBackwardArgs {
  TensorView dx;  ///< [tokens, intermediate] like x; may be dy itself
  TensorView dy;  ///< [tokens, intermediate] like x: the gradient of gelu's out
  TensorView x;   ///< [tokens, intermediate] f32, f16 or bf16
};

/// dx[t, i] = dy[t, i] * f'(x[t, i]), the gradient of gelu, in f32, rounded once:
///   f'(x) = P(X <= x) + x exp(-x^2 / 2) / sqrt(2 pi), X normal
/// Rows may be strided. NaN stays NaN. Throws Error.
QN_API void gelu_backward(const GeluBackwardArgs& args, const RunOptions& options = {});

}  // namespace quern::activation
