// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::quant {

struct TransformScalesArgs {
  TensorView out;  ///< [m, groups] f32, any strides: {1, round_up(m, 4)} is what the FP8 GEMM reads by TMA
  TensorView x;    ///< [m, groups] f32, any strides
};

/// Scales that came from elsewhere, row-major as a rule, in the layout that the FP8 GEMM reads: out[i, g] = x[i, g], bits unchanged.
/// Scales of quant.per_token_group need none of it. What lies between the columns of `out` is left alone. Throws Error.
QN_API void transform_scales(const TransformScalesArgs& args, const RunOptions& options = {});

}  // namespace quern::quant
