// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The kernel of the family's gradients.
#pragma once
#include "quern/ops/activation/activate_row/spec.h"

namespace quern::activation {

struct ActivateRowBackwardConfig {
  DType dtype;
  Function function;
  Operands operands;
  rows::RowChunks chunks;
  i32 threads;
};

struct ActivateRowBackwardParams {
  ActivateRowParams row;  // out is dx, like x
  const void* dy;         // [tokens, columns]
  void* dgate;            // [tokens, columns] of two_tensors, or null
  i64 dy_stride, dgate_stride;
};

}  // namespace quern::activation
