// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::norm {

struct RmsNormArgs {
  TensorView out;     ///< [tokens, hidden]; may be x itself
  TensorView x;       ///< [tokens, hidden] f32, f16 or bf16
  TensorView weight;  ///< [hidden]
  float eps = 1e-6f;
};

/// out[t, h] = x[t, h] / sqrt(mean_h(x[t]^2) + eps) * weight[h], in f32, rounded once.
/// The squares are summed in f32: a row whose sum of squares reaches 2^128 (one value of 1.8e19 is enough) gives zeros.
/// Rows may be strided; hidden and tokens are arbitrary. A row's bits do not depend on the other rows.
/// Zhang and Sennrich, Root Mean Square Layer Normalization (arXiv 1910.07467). Throws Error.
QN_API void rms_norm(const RmsNormArgs& args, const RunOptions& options = {});

}  // namespace quern::norm
