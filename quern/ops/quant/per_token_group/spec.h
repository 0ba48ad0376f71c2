// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/abi.h"

namespace quern::quant {

struct PerTokenGroupConfig {
  DType x_dtype;
  DType q_dtype;
  i32 vector;   // elements of one access
  i32 steps;    // rows of a lane, 4 apart; a warp has 4 * steps rows
  i32 threads;  // of a block: 128 columns for each warp
  i32 group;    // columns that share a scale: 32, 64 or 128
  i32 e8m0;     // 1: a scale is stored as its exponent
};

struct PerTokenGroupParams {
  const void* x;  // [m, k]
  void* q;        // [m, k]
  void* scales;   // [m, ceil(k / group)] f32 or e8m0
  i64 x_stride, q_stride;
  i64 scale_strides[2];
  i64 m, k;
  i32 power_of_two;  // 1: scales are rounded up to powers of two
  float amax_floor;
};

}  // namespace quern::quant
