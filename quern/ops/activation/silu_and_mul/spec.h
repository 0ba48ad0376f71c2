// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/abi.h"

namespace quern::activation {

struct SiluAndMulConfig {
  DType dtype;
  i32 vector;    // elements of one access
  i32 accesses;  // of each half, by one thread
  i32 threads;
};

struct SiluAndMulParams {
  const void* x;  // [tokens, 2 * intermediate]
  void* out;      // [tokens, intermediate]
  i64 x_stride, out_stride;
  i64 tokens;
  i64 intermediate;
};

}  // namespace quern::activation
