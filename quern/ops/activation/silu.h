// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::activation {

struct SiluArgs {
  TensorView out;            ///< [tokens, intermediate] like x, which it then may be itself, or e4m3
  TensorView scales;         ///< [tokens, ceil(intermediate / 128)] f32, any strides; of an out that is e4m3, else absent
  TensorView x;              ///< [tokens, intermediate] f32, f16 or bf16
  float amax_floor = 1e-4f;  ///< least largest magnitude of an FP8 group, from 1e-30 to 1e30
};

/// out[t, i] = x[t, i] / (1 + exp(-x[t, i])), in f32, rounded once.
/// An out that is e4m3 is quantised as quant.per_token_group does it, from the unrounded result. Rows may be strided. NaN stays NaN.
/// Elfwing et al., Sigmoid-Weighted Linear Units (arXiv 1702.03118). Throws Error.
QN_API void silu(const SiluArgs& args, const RunOptions& options = {});

}  // namespace quern::activation
