// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::activation {

struct SiluBackwardArgs {
  TensorView dx;  ///< [tokens, intermediate] like x; may be dy itself
  TensorView dy;  ///< [tokens, intermediate] like x: the gradient of silu's out
  TensorView x;   ///< [tokens, intermediate] f32, f16 or bf16
};

/// dx[t, i] = dy[t, i] * f'(x[t, i]), the gradient of silu, in f32, rounded once:
///   f'(x) = s + x s (1 - s), s = 1 / (1 + exp(-x))
/// Rows may be strided. NaN stays NaN. Throws Error.
QN_API void silu_backward(const SiluBackwardArgs& args, const RunOptions& options = {});

}  // namespace quern::activation
