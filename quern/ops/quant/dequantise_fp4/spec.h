// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/bricks/rows/spec.h"

namespace quern::quant {

struct DequantiseFp4Config {
  DType out_dtype;
  i32 e8m0;                // 1: scales are exponents, else e4m3
  i32 group;               // columns that share a scale: 16 or 32
  i32 has_global;          // 1: global_scale is given
  rows::RowChunks chunks;  // of bytes of x, at most 8 an access
  i32 store;               // elements of one store
  i32 threads;
};

struct DequantiseFp4Params {
  const void* x;             // [m, pairs] u8
  const void* scales;        // [m, ceil(2 pairs / group)]
  const void* global_scale;  // [1] f32, where has_global
  void* out;                 // [m, 2 pairs]
  i64 x_stride, out_stride;
  i64 scale_strides[2];
  i64 m, pairs;
};

}  // namespace quern::quant
