// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/abi.h"

namespace quern::activation {

struct SiluAndMulGroupsConfig {
  DType dtype;
  DType out_dtype;
  i32 vector;   // elements of one access
  i32 steps;    // rows of a lane, 4 apart; a warp has 4 * steps rows
  i32 threads;  // of a block: a group of columns for each warp
};

struct SiluAndMulGroupsParams {
  const void* x;  // [tokens, 2 * intermediate]
  void* out;      // [tokens, intermediate]
  void* scales;   // [tokens, ceil(intermediate / 128)] f32
  i64 x_stride, out_stride;
  i64 scale_strides[2];
  i64 tokens;
  i64 intermediate;
};

}  // namespace quern::activation
