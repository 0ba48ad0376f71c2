// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::activation {

struct SiluAndMulArgs {
  TensorView out;            ///< [tokens, intermediate] like x, or e4m3
  TensorView scales;         ///< [tokens, ceil(intermediate / 128)] f32, any strides; of an out that is e4m3, else absent
  TensorView x;              ///< [tokens, 2 * intermediate] f32, f16 or bf16: gate, then up
  float amax_floor = 1e-4f;  ///< least largest magnitude of an FP8 group, from 1e-30 to 1e30
};

/// out[t, i] = silu(x[t, i]) * x[t, intermediate + i], silu(g) = g / (1 + exp(-g)), in f32, rounded once.
/// An out that is e4m3 is quantised as quant.per_token_group does it, from the unrounded result. Rows may be strided. NaN stays NaN.
/// Shazeer, GLU Variants Improve Transformer (arXiv 2002.05202). Throws Error.
QN_API void silu_and_mul(const SiluAndMulArgs& args, const RunOptions& options = {});

}  // namespace quern::activation
