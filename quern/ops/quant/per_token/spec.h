// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/bricks/rows/spec.h"

namespace quern::quant {

struct PerTokenConfig {
  DType x_dtype;
  DType q_dtype;
  i32 bounded;  // 1: scale_upper_bound is given
  rows::RowUnits units;
  i32 threads;
};

struct PerTokenParams {
  const void* x;            // [m, k]
  void* q;                  // [m, k]
  void* scales;             // [m] f32
  const void* upper_bound;  // [1] f32, where bounded
  i64 x_stride, q_stride, scale_stride;
  i64 m, k;
  float amax_floor;
  i32 unused;
};

}  // namespace quern::quant
