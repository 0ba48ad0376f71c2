// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::elementwise {

struct SoftCapArgs {
  TensorView out;    ///< [tokens, hidden] like x, which it may be itself
  TensorView x;      ///< [tokens, hidden] f32, f16 or bf16: logits
  float cap = 30.f;  ///< from 1e-30 to 1e30
};

/// out[t, h] = cap * tanh(x[t, h] / cap), in f32, rounded once: logits of Gemma 2 and Grok. Rows may be strided. NaN stays NaN. Throws
/// Error.
QN_API void soft_cap(const SoftCapArgs& args, const RunOptions& options = {});

}  // namespace quern::elementwise
