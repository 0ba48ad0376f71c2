// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The kernels of softmax_backward: rows that a block holds; of longer ones the dot products, then the results.
#pragma once
#include "quern/bricks/mass/mass_spec.h"
#include "quern/bricks/rows/spec.h"

namespace quern::sampling {

struct SoftmaxBackwardParams {
  const void* dy;                           // [rows, vocab]
  const void* y;                            // [rows, vocab]
  const float* temperatures;                // [rows] or null
  void* dlogits;                            // [rows, vocab]
  void* parts;                              // [rows, chunks] f32: dot products of the chunks of long rows, or null
  i64 dy_stride, y_stride, dlogits_stride;  // elements from row to row
  i64 rows, vocab, chunks;
  float temperature;
  i32 unused;
};

/// Of softmax_backward_row, which holds whole rows, and of softmax_backward_dots, which makes the parts of longer ones.
struct SoftmaxBackwardConfig {
  DType dtype;
  DType out_dtype;  // of dlogits
  rows::RowDots dots;
  i32 threads;
};

/// Of softmax_backward_results, for rows whose parts are there.
struct SoftmaxResultsConfig {
  DType dtype;
  DType out_dtype;
  rows::RowChunks chunks;
  i32 threads;
};

}  // namespace quern::sampling
