// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the kernels of the family share: where positions and angles come from, and how a head lies over lanes.
#pragma once
#include "quern/kit/abi.h"

namespace quern::rope {

constexpr int kMaxPairs = 128;

/// What tells the angle of a pair. The values enter compile keys.
enum class Angles : i32 {
  theta,        ///< a table of turns that the host makes of theta, in Params
  frequencies,  ///< the same table in the caller's memory
  table,        ///< sines and cosines of each position in the caller's memory
};

/// What tells the position of a token. The values enter compile keys.
enum class PositionsOf : i32 {
  tokens,    ///< one of each token
  sections,  ///< three of each token, of which a pair has one by its section
  requests,  ///< one of each request's first token
};

struct AngleConfig {
  Angles angles;
  DType table_dtype;  // of cos and sin; f32 where there are none
  PositionsOf positions_of;
  DType index_dtype;  // i32 or i64
};

struct HeadConfig {
  DType dtype;
  i32 interleaved;
  i32 vector;  // elements of one access; divides rotary_dim, head_dim and, where halves are pairs, rotary_dim / 2
  i32 lanes;   // neighbouring lanes that have a head: 1, 2, 4, .. 32
  i32 rest;    // 1: elements behind rotary_dim are moved too
};

struct AngleParams {
  const void* positions;                                                 // [tokens], [3, tokens], or indptr [batch + 1]
  const void* offsets;                                                   // [batch] or null
  const void* cos;                                                       // [rows, half] or null
  const void* sin;                                                       // [rows, half] or null
  const float* frequencies;                                              // [half, 2] or null
  i64 position_stride;                                                   // elements from one of a token's three positions to the next
  i64 frequency_stride;                                                  // elements
  i64 cos_row_stride, cos_pair_stride, sin_row_stride, sin_pair_stride;  // elements
  i64 batch;
  i64 limit;        // positions are below it
  i32 half;         // rotary_dim / 2: pairs of a head
  i32 dense_table;  // 1: rows of cos and sin are dense, and start at multiples of 16 bytes
  i32 sections[3];
  i32 sections_interleaved;
  float cos_sin_scale;
  i32 unused;
  // Turns per position, f_i / (2 pi), as the sum of two floats; zeros behind the last pair
  float turns_high[kMaxPairs];
  float turns_low[kMaxPairs];
};

/// Turns of the pairs, high, then low.
QN_HOST_DEVICE constexpr int turns_smem(const AngleConfig& c) { return c.angles == Angles::theta ? 2 * 4 * kMaxPairs : 0; }

struct RotateConfig {
  AngleConfig angles;
  HeadConfig head;
  i32 in_flight;  // heads of a lane that are loaded before the first is stored
  i32 threads;
};

struct RotateParams {
  AngleParams angles;
  const void* q;  // [tokens, heads_q, head_dim]
  const void* k;  // [tokens, heads_kv, head_dim]
  void* q_out;    // like q, or q itself
  void* k_out;    // like k, or k itself
  i64 q_token_stride, q_head_stride, k_token_stride, k_head_stride;
  i64 q_out_token_stride, q_out_head_stride, k_out_token_stride, k_out_head_stride;
  i64 tokens;
  i32 heads_q, heads_kv, head_dim;
  i32 parts;  // of a token: part i has heads i, i + parts, ..
};

}  // namespace quern::rope
