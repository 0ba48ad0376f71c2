// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the host says of kernels that are made of each_chunk.
#pragma once
#include "quern/bricks/rows/spec.h"
#include "quern/op/schema.h"

namespace quern::rows {

/// Rows and columns as a kernel walks over them.
struct Extents {
  i64 rows, columns;
};
/// One long row where no tensor has gaps between its rows: short rows then share blocks.
inline Extents flat_extents(i64 rows, i64 columns, bool contiguous) { return contiguous ? Extents{1, rows * columns} : Extents{rows, columns}; }

/// The widest access that is at most `widest` elements and divides the columns.
inline i32 vector_of(i32 widest, i64 columns) {
  while (columns % widest) widest /= 2;
  return widest;
}

/// A block for each chunk. Many small blocks: the hardware's own scheduling evens out the end better than a walk over the grid.
inline i64 chunk_blocks(const RowChunks& c, i32 threads, const Extents& e, const DeviceInfo& device) {
  return max_of<i64>(1, min_of<i64>(e.rows * ceil_div<i64>(e.columns, chunk_columns(c, threads)), i64(device.sms) << 16));
}

}  // namespace quern::rows
