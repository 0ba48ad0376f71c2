// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/sampling/filters/spec.h"

namespace quern::sampling {

struct MaskConfig {
  FilterLayout layout;
  i32 store;  // elements of an access of out
  i32 threads;
  i32 min_blocks;  // resident_blocks()
};

struct MaskParams {
  const void* logits;  // [rows, vocab]
  void* out;           // [rows, vocab]
  FilterParams filter;
  i64 stride, out_stride;  // elements from row to row
  i64 rows, vocab;
};

}  // namespace quern::sampling
