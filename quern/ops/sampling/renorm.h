// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"
#include "quern/ops/sampling/filters_spec.h"

namespace quern::sampling {

struct RenormArgs {
  TensorView out;     ///< [rows, vocab] f32; may be probs itself
  TensorView probs;   ///< [rows, vocab] f32, f16 or bf16: probabilities, or numbers in proportion to them
  TensorView top_ks;  ///< optional [rows] i32, in the place of top_k
  TensorView top_ps;  ///< optional [rows] f32, in the place of top_p
  TensorView min_ps;  ///< optional [rows] f32, in the place of min_p
  i32 top_k = 0;      ///< these as of sampling.sample
  float top_p = 1.0f;
  float min_p = 0.0f;
  FilterOrder order = FilterOrder::top_k_first;
  bool min_p_first = false;
  FilterTies ties = FilterTies::lowest_ids;
};

/// out[row, i] = probs[row, i] / the sum of those that survive, 0 of those that do not. Who survives is as of sampling.sample; the sum is
/// exact, so a row has the same bits in every plan, batch and rank. Two roundings: of the sum to 24 bits, and of the quotient. NaN
/// throughout: rows with a NaN or a number below 0, of zeros, and those whose parameter in a tensor is NaN. Throws Error.
QN_API void renorm(const RenormArgs& args, const RunOptions& options = {});

}  // namespace quern::sampling
