// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"
#include "quern/ops/sampling/filters_spec.h"

namespace quern::sampling {

struct MaskArgs {
  TensorView out;            ///< [rows, vocab] of logits' dtype; may be logits itself
  TensorView logits;         ///< [rows, vocab] f32, f16 or bf16
  TensorView temperatures;   ///< optional [rows] f32, in the place of temperature
  TensorView top_ks;         ///< optional [rows] i32, in the place of top_k
  TensorView top_ps;         ///< optional [rows] f32, in the place of top_p
  TensorView min_ps;         ///< optional [rows] f32, in the place of min_p
  float temperature = 1.0f;  ///< of the masses that top_p and min_p look at; logits are not divided. Below 1e-5 the largest alone survives
  i32 top_k = 0;             ///< these as of sampling.sample
  float top_p = 1.0f;
  float min_p = 0.0f;
  FilterOrder order = FilterOrder::top_k_first;
  bool min_p_first = false;
  FilterTies ties = FilterTies::lowest_ids;
};

/// out[row, i] = logits[row, i] of those that survive, -inf of those that do not. Who survives is as of sampling.sample. A row of -inf
/// stays; NaN throughout: rows with a NaN, and those whose parameter in a tensor is NaN, or whose temperature is negative or infinite.
/// Throws Error.
QN_API void mask(const MaskArgs& args, const RunOptions& options = {});

}  // namespace quern::sampling
