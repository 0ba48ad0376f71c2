// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/bricks/rows/spec.h"
#include "quern/ops/quant/bit_order_spec.h"

namespace quern::quant {

struct PackbitsConfig {
  BitOrder order;
  i32 aligned;             // 1: eight elements of x are one load
  rows::RowChunks chunks;  // of bytes of out
  i32 threads;
};

struct PackbitsParams {
  const void* x;  // [bits] u8
  void* out;      // [ceil(bits / 8)] u8
  i64 bits;
};

}  // namespace quern::quant
