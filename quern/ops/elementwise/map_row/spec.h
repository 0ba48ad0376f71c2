// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The kernel of ops whose elements depend on the same element of one or two inputs, or on it and a number of its row.
#pragma once
#include "quern/bricks/rows/spec.h"

namespace quern::elementwise {

/// The values enter compile keys: append, never renumber.
enum class Map : i32 {
  scale,       ///< x * value
  soft_cap,    ///< value * tanh(x / value)
  add,         ///< x + y
  diag_scale,  ///< x * y of the row
};

struct MapRowConfig {
  DType dtype;
  Map map;
  rows::RowChunks chunks;
  i32 threads;
};

struct MapRowParams {
  const void* x;                       // [tokens, hidden]
  const void* y;                       // [tokens, hidden], of diag_scale [tokens], or null
  void* out;                           // [tokens, hidden]
  i64 x_stride, y_stride, out_stride;  // elements from row to row
  i64 rows, columns;                   // one row where no tensor has gaps
  i64 row_columns;                     // of diag_scale: columns of a row of x where all rows are taken as one, else 0
  float value;
  i32 unused;
};

}  // namespace quern::elementwise
