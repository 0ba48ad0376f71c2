// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Scales of 8-bit operands.
#pragma once
#include "quern/kit/abi.h"

namespace quern::gemm {

/// Columns of a and b that a column of scales is for, and whose products are summed before they are scaled.
constexpr i32 kScaledGroup = kFp8Group;
/// Groups of k columns, the last of which may be short.
QN_HOST_DEVICE constexpr int scaled_steps(i64 k) { return int((k + kScaledGroup - 1) / kScaledGroup); }

/// Scales of an operand: those of element (i, x) are data[(i >> row_shift) * row_stride + x / 128 * column_stride].
struct Scales {
  const void* data;               // f32
  i64 row_stride, column_stride;  // elements; 0 where there is one for all
  i32 row_shift;                  // 7: a scale for 128 rows, else 0
};

}  // namespace quern::gemm
