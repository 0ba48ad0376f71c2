// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/abi.h"

namespace quern::mine {

struct ScaleRowsConfig {
  DType dtype;
  i32 vector;  // elements of one access
  i32 threads;
};

struct ScaleRowsParams {
  const void* x;             // [tokens, hidden]
  const float* factor;       // [tokens]
  void* out;                 // [tokens, hidden]
  i64 x_stride, out_stride;  // elements from row to row
  i64 factor_stride;
  i64 tokens;
  i64 hidden;
};

}  // namespace quern::mine
