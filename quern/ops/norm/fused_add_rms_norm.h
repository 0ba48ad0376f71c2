// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::norm {

struct FusedAddRmsNormArgs {
  TensorView out;       ///< [tokens, hidden] like x, which it then may be itself, or e4m3
  TensorView scales;    ///< [tokens, ceil(hidden / 128)] f32, any strides; of an out that is e4m3, else absent
  TensorView residual;  ///< [tokens, hidden], updated in place: residual + x
  TensorView x;         ///< [tokens, hidden] f32, f16 or bf16
  TensorView weight;    ///< [hidden]
  float eps = 1e-6f;
};

/// residual += x, then out = rms_norm(residual) * weight, of the sum in f32 before it is rounded into residual.
/// The squares are summed in f32: a row whose sum of squares reaches 2^128 (one value of 1.8e19 is enough) gives zeros.
/// An out that is e4m3 is quantised as quant.per_token_group does it, from the unrounded result; it must not overlap x.
/// With RunOptions::pdl, weight is read while kernels before in the stream may still run: it must be nothing that they write.
/// Throws Error.
QN_API void fused_add_rms_norm(const FusedAddRmsNormArgs& args, const RunOptions& options = {});

}  // namespace quern::norm
