// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Rows of a call: indices of the axis that the op states by `.rows`, which can be cut out of its tensors.
#pragma once
#include <string>

#include "quern/testing/case_args.h"

namespace quern::testing {

/// The dimension of a tensor that is the op's rows axis: 0, or -1 for none, or -2 when rows cannot be cut out of it.
int rows_dim(const Op& op, const TensorDef& t);
/// Restricts every tensor of `args` to rows [begin, end); the offsets of a CSR form stay absolute.
void keep_rows(const Op& op, void* args, i64 begin, i64 end);
/// Rows that begin at a multiple of this leave every tensor as aligned as it is: 1, but where a tensor's rows are its columns in
/// memory (lies_transposed) as many as 16 bytes hold.
i64 row_unit(const Op& op, const void* args);
/// True when one index of the op's rows axis can be cut out of every tensor; with `args`, of every present one.
bool rows_can_be_sliced(const Op& op, const void* args = nullptr);
/// The same, and every output has a row for each: a reference of some rows makes those of all outputs.
bool outputs_can_be_sliced(const Op& op, const void* args);
/// The number of rows of a call, 0 without any.
i64 row_count(const Op& op, const void* args);
/// Index `at` of the op's columns axis of a tensor, or of the block that it lies in; the tensor itself where it has no such axis.
TensorView column_of(const Op& op, size_t tensor, const TensorView& view, i64 at);
/// The number of columns of a call, 0 without any.
i64 column_count(const Op& op, const void* args);
/// Bytes of row r of every output that has rows; all bytes of every output when r is -1. one_nan: every NaN has the same.
std::string output_bytes(const CaseArgs& args, i64 r, bool one_nan = false);
/// True for an op whose calls may ask for batch invariance, so that it is promised only then.
bool has_invariant_mode(const Op& op);

}  // namespace quern::testing
