// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Where scales lie.
#pragma once
#include "quern/bricks/gemm/scales_spec.h"
#include "quern/kit/kit.cuh"

namespace quern::gemm {

/// Where a scale of the first stage is, and how many elements further that of the next one; null: there is none.
struct ScaleSource {
  const f32* first;
  i64 stride;
};

/// Where the scales of `row` begin (past `rows`: of the last one, for results that are not stored).
QN_DEVICE const f32* scales_of_row(const Scales& s, i32 row, i32 rows) {
  return static_cast<const f32*>(s.data) + i64(min_of(row, rows - 1) >> s.row_shift) * s.row_stride;
}
/// Of a row of scales, from a stage on.
QN_DEVICE ScaleSource scale_source(const Scales& s, i32 row, i32 rows, i32 first_step = 0) {
  return {scales_of_row(s, row, rows) + i64(first_step) * s.column_stride, s.column_stride};
}

}  // namespace quern::gemm
