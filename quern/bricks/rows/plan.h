// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the host says of kernels that are made of each_chunk or of whole rows.
#pragma once
#include "quern/bricks/rows/spec.h"
#include "quern/op/schema.h"

namespace quern::rows {

/// Rows and columns as a kernel walks over them.
struct Extents {
  i64 rows, columns;
};
/// One long row where no tensor has gaps between its rows: short rows then share blocks.
inline Extents flat_extents(i64 rows, i64 columns, bool contiguous) {
  return contiguous ? Extents{1, rows * columns} : Extents{rows, columns};
}

/// The widest access that is at most `widest` elements and divides the columns.
inline i32 vector_of(i32 widest, i64 columns) {
  while (columns % widest) widest /= 2;
  return widest;
}

/// A block for each chunk. Many small blocks: the hardware's own scheduling evens out the end better than a walk over the grid.
inline i64 chunk_blocks(const RowChunks& c, i32 threads, const Extents& e, const DeviceInfo& device) {
  return max_of<i64>(1, min_of<i64>(e.rows * ceil_div<i64>(e.columns, chunk_columns(c, threads)), i64(device.sms) << 16));
}

/// How whole rows lie over threads, and the threads of a block.
struct RowShape {
  RowUnits units;
  i32 threads;
};
/// By dtype, alignment and columns alone, never by the number of rows. A warp a row while 4 units a lane hold it, 8 rows a block; then a
/// block a row with 2 units a thread, within the 64 registers that 1024 threads may have. Longer rows, and long ones that are not aligned,
/// are read for each pass.
inline RowShape row_shape(DType dtype, i32 widest, i64 columns) {
  const i32 vector = vector_of(widest, columns);
  const i64 units = ceil_div<i64>(max_of<i64>(columns, 1) * size_of(dtype), 16);
  RowShape s{{vector, 1, 32}, 256};
  if (units <= 32 * 4) {
    while (32 * s.units.held < units) s.units.held *= 2;
    return s;
  }
  s.units.held = 2;
  s.threads = i32(min_of<i64>(max_of<i64>(round_up<i64>(ceil_div<i64>(units, s.units.held), 64), 128), 1024));
  if (vector * size_of(dtype) < 16 || i64(s.threads) * s.units.held < units) s.units.held = 0;
  s.units.row_threads = s.threads;
  return s;
}
/// How dot products of rows lie over threads, the threads of a block, and the chunks of a row.
struct DotShape {
  RowDots dots;
  i32 threads;
  i64 chunks;
};
/// By dtype, alignment and columns alone, never by the number of rows. A lane a row of up to 16 bytes, two of up to 32, and so on up to a
/// warp; then a warp with two units a lane; then a block, of 128 to 1024 threads. Rows beyond 32 KB are cut into chunks of 8 KB, so that a
/// few of them fill the device too.
inline DotShape dot_shape(DType dtype, i32 widest, i64 columns) {
  const i64 units = ceil_div<i64>(max_of<i64>(columns, 1) * size_of(dtype), 16);
  DotShape s{{vector_of(widest, columns), 1, 1}, 256, 1};
  while (s.dots.chunk_threads < 32 && s.dots.chunk_threads < units) s.dots.chunk_threads *= 2;
  if (units <= 32) return s;
  s.dots.units = 2;
  if (units <= 64) return s;
  s.threads = units > 2 * 1024 ? 256 : 128;
  while (units <= 2 * 1024 && s.threads * s.dots.units < units) s.threads *= 2;
  s.dots.chunk_threads = s.threads;
  s.chunks = ceil_div<i64>(units, i64(s.threads) * s.dots.units);
  return s;
}
/// A block for each chunk, or for as many as it takes at a time; of long lists 256 a multiprocessor, each of which walks over the grid.
inline i64 dot_blocks(const DotShape& s, i64 rows, const DeviceInfo& device) {
  return max_of<i64>(1, min_of<i64>(ceil_div<i64>(rows * s.chunks, s.threads / s.dots.chunk_threads), i64(device.sms) * 256));
}

/// Blocks that fill the device once at 1024 threads a multiprocessor; each walks over its rows.
inline i64 row_blocks(const RowShape& s, i64 rows, const DeviceInfo& device) {
  return max_of<i64>(1, min_of<i64>(ceil_div<i64>(rows, s.threads / s.units.row_threads), i64(device.sms) * max_of(1, 1024 / s.threads)));
}

}  // namespace quern::rows
