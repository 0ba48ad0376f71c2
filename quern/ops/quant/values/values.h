// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Values that the cases of the family put into x beside random ones, and the family's budget.
#pragma once
#include "quern/op/fp8_output.h"

namespace quern::quant {

/// Where the case's word `special` is not 0, makes blocks of `rows` x `columns` elements of x zeros, tiny ones, the dtype's largest, and,
/// outside of proofs, blocks with an infinity and, where `nan` says so, a NaN in them. One block in six stays as it is.
void put_special_values(const TensorView& x, i64 rows, i64 columns, const Case& which, bool nan = true);

/// Half of the bytes become 0; others are 1, 128, 255 or any.
void put_bools(const TensorView& x, Random& random);

/// The formulas state every rounding, so bits must be equal.
inline Budget exact(const Problem&) { return {.exact = true}; }

}  // namespace quern::quant
