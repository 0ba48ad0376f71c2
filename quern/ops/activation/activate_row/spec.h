// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The kernels of the family: Config tells which function and where its operands lie.
#pragma once
#include "quern/bricks/rows/spec.h"

namespace quern::activation {

/// What becomes of x, or of gate and up. The values enter compile keys: append, never renumber.
enum class Function : i32 { silu, gelu, gelu_tanh, relu2, clamped_swiglu };

/// Where the operands lie. The values enter compile keys.
enum class Operands : i32 {
  alone,        ///< x [tokens, columns]
  halves,       ///< x [tokens, 2 * columns]: gates, then ups
  pairs,        ///< x [tokens, 2 * columns]: gate, up, gate, up
  two_tensors,  ///< x [tokens, columns] is up, gate another tensor
};

struct ActivateRowConfig {
  DType dtype;
  Function function;
  Operands operands;
  rows::RowChunks chunks;
  i32 threads;
};

struct ActivateRowParams {
  const void* x;     // [tokens, columns] or [tokens, 2 * columns]
  const void* gate;  // [tokens, columns] or null
  void* out;         // [tokens, columns]
  i64 x_stride, gate_stride, out_stride;
  i64 tokens, columns;
  float alpha, beta, limit;  // of clamped_swiglu
  i32 unused;
};

/// Of activate_row_groups: out is e4m3.
struct ActivateRowGroupsConfig {
  DType dtype;
  DType out_dtype;
  Function function;
  Operands operands;
  i32 vector;   // elements of one access
  i32 steps;    // rows of a lane, 4 apart; a warp has 4 * steps rows
  i32 threads;  // of a block: a group of columns for each warp
};

struct ActivateRowGroupsParams {
  ActivateRowParams row;
  void* scales;  // [tokens, ceil(columns / 128)] f32
  i64 scale_strides[2];
  float amax_floor;
  i32 unused;
};

}  // namespace quern::activation
