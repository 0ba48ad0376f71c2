// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/abi.h"

namespace quern::quant {

constexpr int kTransformColumns = 8;  // of a thread: a sector of a row

struct TransformScalesConfig {
  i32 vector;   // elements of one load
  i32 threads;  // of a block: that many rows
};

struct TransformScalesParams {
  const void* x;  // [m, groups] f32
  void* out;      // [m, groups] f32
  i64 x_strides[2], out_strides[2];
  i64 m, groups;
};

}  // namespace quern::quant
