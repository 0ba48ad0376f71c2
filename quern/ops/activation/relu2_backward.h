// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::activation {

struct Relu2BackwardArgs {
  TensorView dx;  ///< [tokens, intermediate] like x; may be dy itself
  TensorView dy;  ///< [tokens, intermediate] like x: the gradient of relu2's out
  TensorView x;   ///< [tokens, intermediate] f32, f16 or bf16
};

/// dx[t, i] = dy[t, i] * f'(x[t, i]), the gradient of relu2, in f32, rounded once:
///   f'(x) = 2 max(x, 0)
/// Rows may be strided. NaN stays NaN. Throws Error.
QN_API void relu2_backward(const Relu2BackwardArgs& args, const RunOptions& options = {});

}  // namespace quern::activation
