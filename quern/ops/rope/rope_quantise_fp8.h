// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::rope {

struct RopeQuantiseFp8Args {
  TensorView q_rope_out;  ///< [tokens, heads_q, head_dim] e4m3 or e5m2
  TensorView k_rope_out;  ///< [tokens, heads_kv, head_dim] of the same dtype
  TensorView q_nope_out;  ///< [tokens, heads_q, q_nope_dim] of the same dtype, where q_nope is given
  TensorView k_nope_out;  ///< [tokens, heads_kv, k_nope_dim] of the same dtype, where k_nope is given
  TensorView q_rope;      ///< [tokens, heads_q, head_dim] f32, f16 or bf16: the part of q that is rotated
  TensorView k_rope;      ///< [tokens, heads_kv, head_dim] like q_rope; of MLA one head
  TensorView q_nope;      ///< optional [tokens, heads_q, q_nope_dim] like q_rope: the part that is not
  TensorView k_nope;      ///< optional [tokens, heads_kv, k_nope_dim] like q_rope: of MLA the latent
  TensorView positions;   ///< [tokens] i32 or i64, each in [0, 2^24), or below rows
  TensorView q_scale;     ///< optional [1] f32, positive: what FP8 of q is multiplied by to have q; absent: 1
  TensorView k_scale;     ///< the same of k
  TensorView cos;         ///< these as in rope.rope
  TensorView sin;
  TensorView frequencies;
  TensorView mrope_positions;
  i32 rotary_dim = 0;  ///< rotated elements of head_dim, even, at most 256. 0: twice the pairs of a table, else head_dim
  bool interleaved = false;
  float theta = 10000.f;
  float scale = 1.f;
  float llama31_factor = 1.f;
  float low_freq_factor = 1.f;
  float high_freq_factor = 4.f;
  float original_max = 8192.f;
  float cos_sin_scale = 1.f;
  i32 mrope_section_t = 0;
  i32 mrope_section_h = 0;
  i32 mrope_section_w = 0;
  bool mrope_interleaved = false;
};

/// q_rope_out = fp8(rope(q_rope) * (1 / q_scale)), q_nope_out = fp8(q_nope * (1 / q_scale)), the same of k: what FP8 attention reads, in
/// one launch. rope as rope.rope, in f32, not rounded before it is quantised; fp8 rounds to nearest even and cuts to the largest number,
/// NaN stays NaN. Outputs have any strides of tokens and heads, so that both parts of a head may be slices of one tensor. Throws Error.
QN_API void rope_quantise_fp8(const RopeQuantiseFp8Args& args, const RunOptions& options = {});

}  // namespace quern::rope
