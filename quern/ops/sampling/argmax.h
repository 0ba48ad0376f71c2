// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::sampling {

struct ArgmaxArgs {
  TensorView out;     ///< [rows] i32
  TensorView valid;   ///< optional [rows] u8: 1, or 0 for a row with a NaN or without anything above -inf; out is 0 then
  TensorView logits;  ///< [rows, vocab] f32, f16 or bf16
};

/// out[row] = the index of the largest logit, of equal ones the lowest; -0 is 0. Throws Error.
QN_API void argmax(const ArgmaxArgs& args, const RunOptions& options = {});

}  // namespace quern::sampling
