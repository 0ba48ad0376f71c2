// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/sampling/filters/spec.h"

namespace quern::sampling {

struct SampleConfig {
  FilterLayout layout;
  i32 threads;
  i32 min_blocks;  // resident_blocks()
};

struct SampleParams {
  const void* values;  // [logits_rows, vocab]: logits or probs
  i32* out;            // [rows]
  u8* valid;           // [rows] or null
  const i32* indices;  // [rows] or null
  const i64* seeds;    // [rows] or null
  const i64* offsets;  // [rows] or null
  FilterParams filter;
  i64 stride;  // elements from row to row of values
  i64 rows, logits_rows, vocab;
  i64 seed, offset;
};

}  // namespace quern::sampling
