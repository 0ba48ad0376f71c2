// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::rope {

struct RopeAppendPagedArgs {
  TensorView q_out;      ///< [tokens, heads_q, head_dim] like q, which it may be itself
  TensorView k_cache;    ///< [pages, page_size, heads_kv, head_dim] like k, or e4m3 or e5m2; written where tokens are appended
  TensorView v_cache;    ///< [pages, page_size, heads_kv, head_dim] of the same dtype
  TensorView q;          ///< [tokens, heads_q, head_dim] f32, f16 or bf16
  TensorView k;          ///< [tokens, heads_kv, head_dim] like q
  TensorView v;          ///< [tokens, heads_kv, head_dim] like q
  TensorView positions;  ///< [tokens] i32 or i64, of the angles and, beside batch_indices, of the places; each in [0, 2^24), or below rows
  TensorView slot_mapping;     ///< [tokens] i32 or i64: page * page_size + offset; negative: nothing is appended
  TensorView batch_indices;    ///< [tokens] of the dtype of positions, in the place of slot_mapping: the request of each token; negative:
                               ///< nothing is appended
  TensorView page_table;       ///< [batch, max_pages] i32, or absent
  TensorView page_indptr;      ///< [batch + 1] i32, or absent: pages of request b are page_indices[page_indptr[b] ...]
  TensorView page_indices;     ///< [page_indices] i32
  TensorView cos;              ///< optional [rows, pairs] f32 or like q, any strides: of each position and pair
  TensorView sin;              ///< the same
  TensorView frequencies;      ///< optional [pairs, 2] f32: turns per position, as the sum of two numbers; rope::frequencies makes them
  TensorView mrope_positions;  ///< [3, tokens] i32 or i64: time, height and width, in the place of positions for the angles
  TensorView q_weight;         ///< optional [head_dim] like q, or f32: q is normalised by head first
  TensorView k_weight;         ///< the same of k
  TensorView k_scale;          ///< optional [1] or [heads_kv] f32: what FP8 caches hold is k / k_scale; absent: k
  TensorView v_scale;          ///< the same of v
  i32 rotary_dim = 0;          ///< rotated elements of a head, even, at most 256. 0: twice the pairs of a table, else head_dim
  bool interleaved = false;    ///< pairs (2i, 2i+1) instead of (i, i + rotary_dim/2)
  float theta = 10000.f;       ///< these as in rope.rope
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
  float eps = 1e-6f;        ///< of the norms, added to the mean square, from 0 to 1e30
  float weight_bias = 0.f;  ///< added to their weights: Gemma's is 1
};

/// What a layer does between its QKV projection and attention, in one launch: q_out = rope(norm(q)), and for each token
/// k_cache[place] = rope(norm(k)), v_cache[place] = v. norm(x) = x / sqrt(mean(x^2) + eps) * (weight + weight_bias) of each head, where
/// there is a weight; rope as rope.rope; places, and x / scale of FP8 caches, as kv_cache.append_paged. q and rotated k are computed in f32
/// and rounded once to q's dtype; FP8 caches hold that rounded number over its scale, rounded once more. Without norms all bits are those
/// of rope.rope and kv_cache.append_paged one after the other. A token whose place is none appends nothing; its q is rotated all the same,
/// so that its position must be one. Throws Error.
QN_API void rope_append_paged(const RopeAppendPagedArgs& args, const RunOptions& options = {});

}  // namespace quern::rope
