// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/abi.h"

namespace quern::parts {

struct SumPartsConfig {
  DType dtype;  // of the sums
  i32 vector;   // columns of a thread: 4, or 1
  i32 lanes;    // parts that a block adds side by side
  i32 threads;
};

struct SumPartsParams {
  const void* parts;  // [count, part_stride] f32
  void* out[2];       // [columns] each; the second where the grid has two rows
  i64 part_stride;    // elements from part to part
  i64 second;         // elements from a part of the first sums to that of the second
  i64 columns, count;
};

/// Columns of a block.
QN_HOST_DEVICE constexpr int sum_parts_columns(const SumPartsConfig& c) { return c.threads / c.lanes * c.vector; }
/// One sum for each column and part lane.
QN_HOST_DEVICE constexpr int sum_parts_smem(const SumPartsConfig& c) { return c.threads * c.vector * 4; }

}  // namespace quern::parts
