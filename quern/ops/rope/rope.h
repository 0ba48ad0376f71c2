// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::rope {

struct RopeArgs {
  TensorView q_out;            ///< [tokens, heads_q, head_dim] like q, which it may be itself
  TensorView k_out;            ///< [tokens, heads_kv, head_dim] like k, which it may be itself
  TensorView q;                ///< [tokens, heads_q, head_dim] f32, f16 or bf16
  TensorView k;                ///< [tokens, heads_kv, head_dim] like q; heads_kv may be 0
  TensorView positions;        ///< [tokens] i32 or i64, each in [0, 2^24), or below rows
  TensorView cos;              ///< optional [rows, pairs] f32 or like q, any strides: of each position and pair
  TensorView sin;              ///< the same
  TensorView frequencies;      ///< optional [pairs, 2] f32: turns per position, as the sum of two numbers; rope::frequencies makes them
  TensorView mrope_positions;  ///< [3, tokens] i32 or i64, in the place of positions: time, height and width
  TensorView indptr;   ///< [batch + 1] i32 or i64, in the place of positions: request b has the tokens from indptr[b] to indptr[b + 1]
  TensorView offsets;  ///< [batch] like indptr: the position of each request's first token
  i32 rotary_dim = 0;  ///< rotated elements of a head, even, at most 256; the rest is copied. 0: twice the pairs of a table, else head_dim
  bool interleaved = false;      ///< pairs (2i, 2i+1) instead of (i, i + rotary_dim/2)
  float theta = 10000.f;         ///< from 1 to 1e30
  float scale = 1.f;             ///< positions are divided by it, from 0.125 to 1e30
  float llama31_factor = 1.f;    ///< Llama 3.1's frequency scaling as in rope_inplace, from 1 to 1e30; 1: off
  float low_freq_factor = 1.f;   ///< from 1e-30 to 1e30
  float high_freq_factor = 4.f;  ///< more than low_freq_factor, up to 1e30
  float original_max = 8192.f;   ///< from 1 to 1e30
  float cos_sin_scale = 1.f;     ///< sines and cosines of theta and of frequencies are multiplied by it, from 1e-30 to 1e30
  i32 mrope_section_t = 0;       ///< pairs that turn by time; the three sum to rotary_dim / 2 beside mrope_positions
  i32 mrope_section_h = 0;       ///< by height
  i32 mrope_section_w = 0;       ///< by width
  /// Pair i turns by height where i % 3 = 1 and i < 3 h, by width where i % 3 = 2 and i < 3 w; else sections follow each other
  bool mrope_interleaved = false;
};

/// (a, b) -> (a cos - b sin, b cos + a sin) of each pair of q and k, in f32, rounded once. The angle of pair i at position p is p * f_i,
/// f_i = theta^(-2i / rotary_dim) / scale or 2 pi frequencies[i]; its sine and cosine are exact to about 1e-6. Or they are row p of sin and
/// cos. A position is told by positions, by three of each token of which a pair has that of its section (M-RoPE), or by requests:
/// offsets[b] + t - indptr[b], 0 of a token of no request. A pair whose position is negative, beyond 2^24 or beyond the rows of cos becomes
/// NaN; checked emulated devices report it. Su et al., RoFormer (arXiv 2104.09864). Throws Error.
QN_API void rope(const RopeArgs& args, const RunOptions& options = {});

}  // namespace quern::rope
