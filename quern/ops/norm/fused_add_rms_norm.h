// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::norm {

struct FusedAddRmsNormArgs {
  TensorView out;       ///< [tokens, hidden]; may be x itself
  TensorView residual;  ///< [tokens, hidden], updated in place: residual + x
  TensorView x;         ///< [tokens, hidden] f32, f16 or bf16
  TensorView weight;    ///< [hidden]
  float eps = 1e-6f;
};

/// residual += x, then out = rms_norm(residual) * weight, of the sum in f32 before it is rounded into residual.
/// With RunOptions::pdl, weight is read while kernels before in the stream may still run: it must be nothing that they write.
/// Throws Error.
QN_API void fused_add_rms_norm(const FusedAddRmsNormArgs& args, const RunOptions& options = {});

}  // namespace quern::norm
