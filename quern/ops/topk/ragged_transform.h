// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::topk {

struct RaggedTransformArgs {
  TensorView out;         ///< [rows, k] i32: indices plus the row's offset; -1 where a row has fewer
  TensorView x;           ///< [rows, length] f32, f16 or bf16: scores
  TensorView offsets;     ///< [rows] i32: where the tokens of each row begin
  TensorView lengths;     ///< optional [rows] i32: elements of each row; absent: length
  TensorView row_starts;  ///< optional [rows] i32: where in x each row begins, from which indices count; absent: 0
  i64 k = 1;              ///< from 0; more than a row has: the rest is -1
};

/// out = index + offsets[row] of the k largest scores of each row, in ascending order of the indices. The indices are those that
/// topk.select keeps: exactly k, of equal scores the lowest, NaN below -inf. A row of up to k elements keeps all of them, and its scores
/// are not read. A sum that is negative or beyond i32 is -1. Throws Error.
QN_API void ragged_transform(const RaggedTransformArgs& args, const RunOptions& options = {});

}  // namespace quern::topk
