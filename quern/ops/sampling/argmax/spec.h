// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/sampling/filters/spec.h"

namespace quern::sampling {

struct ArgmaxConfig {
  FilterLayout layout;
  i32 threads;
  i32 min_blocks;  // resident_blocks()
};

struct ArgmaxParams {
  const void* logits;  // [rows, vocab]
  i32* out;            // [rows]
  u8* valid;           // [rows] or null
  i64 stride;          // elements from row to row
  i64 rows, vocab;
};

}  // namespace quern::sampling
