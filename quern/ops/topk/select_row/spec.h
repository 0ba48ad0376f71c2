// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/bricks/select/spec.h"

namespace quern::topk {

struct SelectConfig {
  RowLayout row;
  i32 sorted;
  i32 threads;
};

struct SelectParams {
  const void* x;           // [rows, length]
  i32* indices;            // [rows, k]
  void* values;            // [rows, k] or null
  const i32* lengths;      // [rows] or null
  const i32* row_starts;   // [rows] or null
  i64 stride, indices_stride, values_stride;  // elements from row to row
  i64 rows, length, k;
};

/// So many pairs are sorted in shared memory, in the place of the bins.
constexpr i64 kSortedInShared = kSelectBins * 2;

}  // namespace quern::topk
