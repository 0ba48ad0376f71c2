// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::elementwise {

struct DiagScaleArgs {
  TensorView out;       ///< [tokens, hidden] like x, which it may be itself
  TensorView x;         ///< [tokens, hidden] f32, f16 or bf16
  TensorView diagonal;  ///< [tokens] like x, of any stride
};

/// out[t, h] = diagonal[t] * x[t, h], the product of a diagonal matrix and x, in f32, rounded once. Rows may be strided. Throws Error.
QN_API void diag_scale(const DiagScaleArgs& args, const RunOptions& options = {});

}  // namespace quern::elementwise
