// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::activation {

struct ClampedSwigluBackwardArgs {
  TensorView dx;             ///< [tokens, 2 * intermediate] like x, which it may be itself
  TensorView dy;             ///< [tokens, intermediate] like x: the gradient of clamped_swiglu's out
  TensorView x;              ///< [tokens, 2 * intermediate] f32, f16 or bf16: gate and up, as halves or as pairs
  bool interleaved = false;  ///< pairs (2i, 2i + 1) of gate and up instead of halves; dx has the same
  float alpha = 1.702f;      ///< finite
  float beta = 1.f;          ///< finite
  float limit = 7.f;         ///< positive and finite
};

/// The gradients of clamped_swiglu, in f32, each rounded once: with g = min(gate, limit), u = min(max(up, -limit), limit) and s = 1 / (1 +
/// exp(-alpha g)),
///   dgate = dy * (u + beta) * (s + alpha g s (1 - s)) where gate <= limit, else 0
///   dup = dy * g * s where |up| <= limit, else 0
/// They lie in dx as gate and up do in x. Rows may be strided. NaN stays NaN. Throws Error.
QN_API void clamped_swiglu_backward(const ClampedSwigluBackwardArgs& args, const RunOptions& options = {});

}  // namespace quern::activation
