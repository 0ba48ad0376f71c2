// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::sampling {

struct SoftmaxArgs {
  TensorView out;           ///< [rows, vocab] f32; may be logits itself
  TensorView logits;        ///< [rows, vocab] f32, f16 or bf16
  TensorView temperatures;  ///< optional [rows] f32, in the place of temperature
  /// Logits are divided by it; below 1e-5 the result is 1 at the largest logit, the first of equal ones, and else 0
  float temperature = 1.0f;
};

/// out[row] = exp(logits[row] / temperature) / sum of these, by the masses that sampling.sample draws by (docs/sampling.md): the sum is
/// exact, so a row has the same bits in every plan and batch. The relative error is below 2^-21, where the result is not subnormal. NaN
/// throughout: rows with a NaN, of -inf alone, and those whose temperature in a tensor is NaN, negative or infinite. Several +inf share the
/// whole. Throws Error.
QN_API void softmax(const SoftmaxArgs& args, const RunOptions& options = {});

}  // namespace quern::sampling
