// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::topk {

struct SelectArgs {
  TensorView indices;     ///< [rows, k] i32
  TensorView values;      ///< optional [rows, k] of x's dtype
  TensorView x;           ///< [rows, length] f32, f16 or bf16
  TensorView lengths;     ///< optional [rows] i32: elements of each row; absent: length
  TensorView row_starts;  ///< optional [rows] i32: where in x each row begins, from which indices count; absent: 0
  i64 k = 1;              ///< from 0; more than a row has: the rest is index -1, value -inf
  bool sorted = true;     ///< by descending value, equal ones by ascending index; else by ascending index
};

/// The k largest of each row, exactly: of equal values those of the lowest indices. -0 equals 0, and NaN ranks below -inf (torch: above
/// inf). Throws Error.
QN_API void select(const SelectArgs& args, const RunOptions& options = {});

}  // namespace quern::topk
