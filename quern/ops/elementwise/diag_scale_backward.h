// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::elementwise {

struct DiagScaleBackwardArgs {
  TensorView dx;         ///< optional [tokens, hidden]; may be dy itself
  TensorView ddiagonal;  ///< optional [tokens], of dy's dtype or f32
  TensorView dy;         ///< [tokens, hidden] f32, f16 or bf16: the gradient of diag_scale's out
  TensorView x;          ///< [tokens, hidden] like dy
  TensorView diagonal;   ///< [tokens] like dy, of any stride
};

/// Gradients of diag_scale, one or both:
///   dx[t, h] = diagonal[t] * dy[t, h]
///   ddiagonal[t] = sum_h dy[t, h] * x[t, h]
/// in f32, each rounded once. dy and x are read once. The sum has a fixed order, which depends on dtype and hidden alone: a row has the
/// same bits on every call, alone and in any batch. Rows longer than 32 KB are summed in parts, which pass through the workspace. Rows may
/// be strided; extents are arbitrary. Throws Error.
QN_API void diag_scale_backward(const DiagScaleBackwardArgs& args, const RunOptions& options = {});

}  // namespace quern::elementwise
