// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::activation {

struct SwigluBackwardArgs {
  TensorView dx;     ///< [tokens, intermediate] like x: of the ups; may be dy itself
  TensorView dgate;  ///< [tokens, intermediate] like x
  TensorView dy;     ///< [tokens, intermediate] like x: the gradient of swiglu's out
  TensorView x;      ///< [tokens, intermediate] f32, f16 or bf16: what silu(gate) was multiplied by
  TensorView gate;   ///< [tokens, intermediate] like x
};

/// The gradients of swiglu, in f32, each rounded once:
///   dx[t, i] = dy[t, i] * silu(gate[t, i]), dgate[t, i] = dy[t, i] * x[t, i] * f'(gate[t, i])
///   f'(g) = s + g s (1 - s), s = 1 / (1 + exp(-g))
/// Rows may be strided. NaN stays NaN. Throws Error.
QN_API void swiglu_backward(const SwigluBackwardArgs& args, const RunOptions& options = {});

}  // namespace quern::activation
