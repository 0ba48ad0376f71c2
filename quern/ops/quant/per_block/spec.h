// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/abi.h"

namespace quern::quant {

struct PerBlockConfig {
  DType x_dtype;
  DType q_dtype;
  i32 vector;   // elements of one access
  i32 threads;  // of a block, which holds one of 128 x 128 elements in registers
};

struct PerBlockParams {
  const void* x;  // [n, k]
  void* q;        // [n, k]
  void* scales;   // [ceil(n / 128), ceil(k / 128)] f32
  i64 x_stride, q_stride;
  i64 scale_strides[2];
  i64 n, k;
  i32 power_of_two;  // 1: scales are rounded up to powers of two
  float amax_floor;
};

/// A partial maximum of each warp.
QN_HOST_DEVICE constexpr int per_block_smem_bytes(i32 threads) { return 4 * (threads / 32); }

}  // namespace quern::quant
