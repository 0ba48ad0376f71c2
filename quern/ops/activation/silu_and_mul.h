// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::activation {

struct SiluAndMulArgs {
  TensorView out;  ///< [tokens, intermediate]
  TensorView x;    ///< [tokens, 2 * intermediate] f32, f16 or bf16: gate, then up
};

/// out[t, i] = silu(x[t, i]) * x[t, intermediate + i], silu(g) = g / (1 + exp(-g)), in f32, rounded once.
/// Rows may be strided. Shazeer, GLU Variants Improve Transformer (arXiv 2002.05202). Throws Error.
QN_API void silu_and_mul(const SiluAndMulArgs& args, const RunOptions& options = {});

}  // namespace quern::activation
