// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::norm {

struct RmsNormHeadsArgs {
  TensorView out;     ///< [tokens, heads, head_dim] like x, which it may be itself
  TensorView x;       ///< [tokens, heads, head_dim] f32, f16 or bf16: heads of q or of k, any strides of tokens and heads
  TensorView weight;  ///< optional [head_dim] like x, or f32: one for all heads; absent: 1
  float eps = 1e-6f;
  float weight_bias = 0.f;  ///< added to the weight, where there is one: Gemma's is 1
};

/// out[t, h] = rms_norm(x[t, h]) * (weight + weight_bias) for each head of each token: the norm of q and k before RoPE. q and k may be
/// parts of one QKV tensor. In f32, rounded once. Throws Error.
QN_API void rms_norm_heads(const RmsNormHeadsArgs& args, const RunOptions& options = {});

}  // namespace quern::norm
