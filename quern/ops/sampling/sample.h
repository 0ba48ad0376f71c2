// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"
#include "quern/ops/sampling/filters_spec.h"

namespace quern::sampling {

struct SampleArgs {
  TensorView out;            ///< [rows] i32: a token of each
  TensorView valid;          ///< optional [rows] u8: 1, or 0 where a row has none to draw; its token is 0 then
  TensorView logits;         ///< [logits_rows, vocab] f32, f16 or bf16
  TensorView probs;          ///< the same in their place: probabilities, or numbers in proportion to them
  TensorView temperatures;   ///< optional [logits_rows] f32, in the place of temperature
  TensorView top_ks;         ///< optional [logits_rows] i32, in the place of top_k
  TensorView top_ps;         ///< optional [logits_rows] f32, in the place of top_p
  TensorView min_ps;         ///< optional [logits_rows] f32, in the place of min_p
  TensorView indices;        ///< optional [rows] i32: the row of logits that each output row draws from; absent: its own
  TensorView seeds;          ///< optional [rows] i64, in the place of seed
  TensorView offsets;        ///< optional [rows] i64, in the place of offset
  float temperature = 1.0f;  ///< logits are divided by it; below 1e-5 the largest logit is taken, and no random number
  i32 top_k = 0;             ///< so many of the largest survive; 0, less, and vocab or more: all
  float top_p = 1.0f;        ///< the fewest of the largest survive that hold this part of the mass; 1 or more: all; 0 or less: the first
  float min_p = 0.0f;        ///< tokens survive whose mass is at least this part of the largest one; 0 or less: all; more than 1 is 1
  i64 seed = 0;              ///< 64 bits, the key of Philox
  i64 offset = 0;            ///< 64 bits of its counter
  FilterOrder order = FilterOrder::top_k_first;
  bool min_p_first = false;                  ///< min_p acts before top_k and top_p, not after them
  FilterTies ties = FilterTies::lowest_ids;  ///< what top_k and top_p keep of equal values at their end
};

/// Draws a token of each row in proportion to exp(logit / temperature), or to probs, among those that survive top_k, top_p and min_p.
/// Logits of which |logit * log2(e) / temperature| >= 2^28 are cut to that, so beyond it they weigh the same: at a temperature of 1e-5 from
/// |logit| = 1860 on. Values are ordered from the largest, equal ones (-0 is 0) by ascending id; top_k keeps exactly k, or with
/// FilterTies::all also the equals of the last. Masses of tokens are integers and their sums exact (docs/sampling.md), so the token depends
/// on the row, its parameters, seed and offset alone: not on device, plan, batch or block. The token is the first, by id, at which the sum
/// of the survivors' masses passes floor(u * total / 2^64); u are words 0 and 1 of Philox4x32-10 with key = seed, counter = (offset, row,
/// 0). row is the output row, or 0 where seeds are a tensor: then a request alone draws as in any batch. valid is 0, and the token 0, for a
/// row with a NaN, with a negative probability, without anything above -inf (0 of probs), and for parameters in tensors that are NaN, and
/// temperatures that are negative or infinite. Several +inf share the mass. Throws Error.
QN_API void sample(const SampleArgs& args, const RunOptions& options = {});

}  // namespace quern::sampling
