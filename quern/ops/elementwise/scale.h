// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::elementwise {

struct ScaleArgs {
  TensorView out;      ///< [tokens, hidden] like x, which it may be itself
  TensorView x;        ///< [tokens, hidden] f32, f16 or bf16
  float factor = 1.f;  ///< finite
};

/// out[t, h] = x[t, h] * factor, in f32, rounded once. Rows may be strided. Throws Error.
QN_API void scale(const ScaleArgs& args, const RunOptions& options = {});

}  // namespace quern::elementwise
