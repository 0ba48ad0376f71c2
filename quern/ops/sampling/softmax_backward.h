// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::sampling {

struct SoftmaxBackwardArgs {
  TensorView dlogits;        ///< [rows, vocab] like dy, which it then may be itself, or f32, f16 or bf16
  TensorView dy;             ///< [rows, vocab] f32, f16 or bf16: the gradient of softmax's out
  TensorView out;            ///< [rows, vocab] like dy: what softmax gave
  TensorView temperatures;   ///< optional [rows] f32, in the place of temperature
  float temperature = 1.0f;  ///< as softmax was given it
};

/// dlogits[row, i] = out[row, i] * (dy[row, i] - sum_j dy[row, j] * out[row, j]) / temperature, in f32, rounded once.
/// A temperature below 1e-5, by which softmax chooses the largest logit, makes the gradient 0: 1 / temperature is taken for 0 there. NaN in
/// a row makes it NaN. The sum has a fixed order, which depends on dtype and vocab alone: a row has the same bits on every call, alone and
/// in any batch. Rows of up to 32 KB are read once, longer ones twice, and are then spread over blocks; vocab is arbitrary. Rows may be
/// strided. Throws Error.
QN_API void softmax_backward(const SoftmaxBackwardArgs& args, const RunOptions& options = {});

}  // namespace quern::sampling
