// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What linear_rowsum and its backward op say to the host of sums over rows.
#pragma once
#include "quern/bricks/parts/plan.h"
#include "quern/op/schema.h"
#include "quern/ops/gemm/rowsum/spec.h"

namespace quern::gemm {

extern const jit::Kernel<ColumnSumsConfig, ColumnSumsParams> column_sums_kernel;

/// Parts of so many rows.
inline i64 row_parts(i64 rows) { return ceil_div<i64>(rows, kPartRows); }
inline i64 column_sums_blocks(const ColumnSumsConfig& c, i64 rows, i64 columns) {
  return row_parts(rows) * ceil_div<i64>(columns, column_sums_columns(c));
}
/// Roundings of a sum over `rows` rows: 8 of a warp, 8 warps, a 32nd of the parts, 32 lanes.
inline double column_sum_roundings(i64 rows) { return 8 + 8 + 32 + double(row_parts(rows)) / 32; }
/// Those of a vector's sum: a 256th of the elements, then 5 and 8.
inline double vector_sum_roundings(i64 elements) { return double(elements) / 256 + 14; }

}  // namespace quern::gemm
