// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::activation {

struct ClampedSwigluArgs {
  TensorView out;            ///< [tokens, intermediate] like x, or e4m3
  TensorView scales;         ///< [tokens, ceil(intermediate / 128)] f32, any strides; of an out that is e4m3, else absent
  TensorView x;              ///< [tokens, 2 * intermediate] f32, f16 or bf16: gate and up, as halves or as pairs
  bool interleaved = false;  ///< pairs (2i, 2i + 1) of gate and up, as gpt-oss has them, instead of halves
  float alpha = 1.702f;      ///< finite
  float beta = 1.f;          ///< finite
  float limit = 7.f;         ///< positive and finite
  float amax_floor = 1e-4f;  ///< least largest magnitude of an FP8 group, from 1e-30 to 1e30
};

/// out[t, i] = (u + beta) * g * sigmoid(alpha * g) with g = min(gate, limit) and u = min(max(up, -limit), limit), in f32, rounded once: the
/// MLP of gpt-oss. gate and up are x[t, i] and x[t, intermediate + i], or x[t, 2 i] and x[t, 2 i + 1] where interleaved. An out that is
/// e4m3 is quantised as quant.per_token_group does it, from the unrounded result. Rows may be strided. NaN stays NaN. OpenAI, gpt-oss-120b
/// and gpt-oss-20b Model Card (arXiv 2508.10925). Throws Error.
QN_API void clamped_swiglu(const ClampedSwigluArgs& args, const RunOptions& options = {});

}  // namespace quern::activation
