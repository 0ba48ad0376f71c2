// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the host says of any product.
#pragma once
#include "quern/op/schema.h"

namespace quern::gemm {

inline Major major_of(const TensorFacts& operand) { return operand.transposed ? Major::mn : Major::k; }

/// Error of an element of out = sum_x scales * a * b of 8-bit operands, by the portable kernels or by wgmma.
Budget scaled_budget(DType out, i64 k, bool portable);

}  // namespace quern::gemm
