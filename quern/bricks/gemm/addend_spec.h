// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/abi.h"

namespace quern::gemm {

/// What is added to the product, element by element.
struct DenseAddend {
  const void* data;  // [m, n]
  i64 stride;        // elements from row to row
  DType dtype;       // f32, or that of a
  i32 alignment;     // bytes that every row is aligned to
};

}  // namespace quern::gemm
