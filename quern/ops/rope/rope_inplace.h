// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::rope {

struct RopeInplaceArgs {
  TensorView q;          ///< [tokens, heads_q, head_dim], rotated in place
  TensorView k;          ///< [tokens, heads_kv, head_dim], rotated in place
  TensorView positions;  ///< [tokens] i32 or i64, each in [0, 2^24): of others results are NaN, and checked emulated devices report them
  i32 rotary_dim = 0;    ///< rotated elements of a head, even, at most 256; the rest stays as it is. 0: head_dim
  bool interleaved = false;  ///< pairs (2i, 2i+1) instead of (i, i + rotary_dim/2)
  float theta = 10000.f;     ///< from 1 to 1e30
  float scale = 1.f;         ///< positions are divided by it, from 0.125 to 1e30
  /// Llama 3.1's frequency scaling, off while factor is 1: wavelengths above original_max / low_freq_factor are stretched by
  /// factor, those below original_max / high_freq_factor stay, in between both are mixed.
  float llama31_factor = 1.f;    ///< from 1 to 1e30
  float low_freq_factor = 1.f;   ///< from 1e-30 to 1e30
  float high_freq_factor = 4.f;  ///< more than low_freq_factor, up to 1e30
  float original_max = 8192.f;   ///< from 1 to 1e30
};

/// Rotates each pair (a, b) of q and k at position p by the angle p * f_i, f_i = theta^(-2i / rotary_dim):
/// a' = a cos - b sin, b' = b cos + a sin. Angles are exact to about 1e-6 rad at any position (f_i in two floats, reduced to a
/// fraction of a turn). Su et al., RoFormer (arXiv 2104.09864); scaling: Llama 3.1 model card.
/// rope.rope, whose outputs may be its inputs, has more forms. Throws Error.
QN_API void rope_inplace(const RopeInplaceArgs& args, const RunOptions& options = {});

}  // namespace quern::rope
