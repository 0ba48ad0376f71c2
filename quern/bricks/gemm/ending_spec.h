// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/abi.h"

namespace quern::gemm {

/// What follows the sums of a product: the bias, c and the activation in f32, then rounding.
struct Ending {
  DType dtype;  // of a bias and c that are not f32; of 16-bit products that of a and b
  DType out_dtype;
  i32 has_c;       // 1: c is added
  i32 activation;  // an Activation
};

/// What is added to the product, element by element.
struct DenseAddend {
  const void* data;  // [m, n]
  i64 stride;        // elements from row to row
  DType dtype;       // f32, or that of a
  i32 alignment;     // bytes that every row is aligned to
};

}  // namespace quern::gemm
