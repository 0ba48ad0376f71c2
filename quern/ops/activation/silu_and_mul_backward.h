// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::activation {

struct SiluAndMulBackwardArgs {
  TensorView dx;  ///< [tokens, 2 * intermediate] like x, which it may be itself
  TensorView dy;  ///< [tokens, intermediate] like x: the gradient of silu_and_mul's out
  TensorView x;   ///< [tokens, 2 * intermediate] f32, f16 or bf16: gate, then up
};

/// The gradients of silu_and_mul, of gates and then of ups, in f32, each rounded once: with g = x[t, i] and u = x[t, intermediate + i],
///   dx[t, i] = dy[t, i] * u * f'(g), dx[t, intermediate + i] = dy[t, i] * silu(g)
///   f'(g) = s + g s (1 - s), s = 1 / (1 + exp(-g))
/// Rows may be strided. NaN stays NaN. Throws Error.
QN_API void silu_and_mul_backward(const SiluAndMulBackwardArgs& args, const RunOptions& options = {});

}  // namespace quern::activation
