// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::activation {

struct GeluTanhAndMulBackwardArgs {
  TensorView dx;  ///< [tokens, 2 * intermediate] like x, which it may be itself
  TensorView dy;  ///< [tokens, intermediate] like x: the gradient of gelu_tanh_and_mul's out
  TensorView x;   ///< [tokens, 2 * intermediate] f32, f16 or bf16: gate, then up
};

/// The gradients of gelu_tanh_and_mul, of gates and then of ups, in f32, each rounded once: with g = x[t, i] and u = x[t, intermediate +
/// i],
///   dx[t, i] = dy[t, i] * u * f'(g), dx[t, intermediate + i] = dy[t, i] * gelu_tanh(g)
///   f'(g) = s + g s (1 - s) z', s = 1 / (1 + exp(-z)), z = 2 sqrt(2 / pi) (g + 0.044715 g^3)
/// Rows may be strided. NaN stays NaN. Throws Error.
QN_API void gelu_tanh_and_mul_backward(const GeluTanhAndMulBackwardArgs& args, const RunOptions& options = {});

}  // namespace quern::activation
