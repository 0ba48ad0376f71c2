// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/abi.h"

namespace quern::quant {

struct PerTensorAmaxConfig {
  DType x_dtype;
  i32 vector;    // elements of one access
  i32 accesses;  // of one thread, in flight together
  i32 threads;
};

struct PerTensorConfig {
  DType x_dtype;
  DType q_dtype;
  i32 vector;
  i32 accesses;
  i32 threads;
  i32 dynamic;  // 1: the scale follows from the partial maxima
};

struct PerTensorParams {
  const void* x;             // [m, k]
  void* q;                   // [m, k]
  void* scale;               // [1] f32
  const void* static_scale;  // [1] f32, unless dynamic
  void* partials;            // [partial_count] f32: the largest |x| of each block of the first launch
  i64 x_stride, q_stride;
  i64 m, k;  // one row where both tensors are contiguous
  i64 partial_count;
  float amax_floor;
  i32 unused;
};

/// A partial maximum of each warp.
QN_HOST_DEVICE constexpr int per_tensor_smem_bytes(i32 threads) { return 4 * (threads / 32); }

}  // namespace quern::quant
