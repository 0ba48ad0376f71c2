// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/bricks/rows/spec.h"

namespace quern::elementwise {

struct DiagScaleBackwardConfig {
  DType dtype;
  DType sum_dtype;  // of ddiagonal; f32 where it is a part
  i32 with_dx;
  i32 with_sum;
  rows::RowDots dots;
  i32 threads;
};

struct DiagScaleBackwardParams {
  const void* dy;                                       // [tokens, hidden]
  const void* x;                                        // [tokens, hidden]
  const void* diagonal;                                 // [tokens]
  void* dx;                                             // [tokens, hidden] or null
  void* sums;                                           // [chunks, part_stride], or [tokens] where a row is one chunk, or null
  i64 dy_stride, x_stride, dx_stride, diagonal_stride;  // elements from row to row
  i64 part_stride;                                      // from chunk to chunk
  i64 tokens, hidden;
};

}  // namespace quern::elementwise
