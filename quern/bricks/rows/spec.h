// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/abi.h"

namespace quern::rows {

/// How the columns of a row are dealt to the threads of a block: the part of a Config that each_chunk reads.
struct RowChunks {
  i32 vector;    // elements of one access; divides the number of columns
  i32 accesses;  // of a thread, all loaded before the first is stored
};

/// Columns of one chunk, which a block of `threads` takes at a time.
QN_HOST_DEVICE constexpr i64 chunk_columns(const RowChunks& c, i32 threads) { return i64(threads) * c.accesses * c.vector; }

/// How a whole row lies over threads, whose sums or maxima are of all its columns: the part of a Config that WholeRow is a template on.
struct RowUnits {
  i32 vector;       // elements of one access; divides the number of columns
  i32 held;         // units of 16 bytes of a thread, kept in registers; 0: the row is read again for each pass
  i32 row_threads;  // threads of a row: 32, or all of the block
};

/// Shared memory of a RowReducer: two slots of a value a warp, used in turn.
QN_HOST_DEVICE constexpr int row_reducer_bytes(const RowUnits& r, i32 threads) { return r.row_threads == 32 ? 0 : 2 * 4 * (threads / 32); }

/// How pairs of rows lie over threads, of which dot products are taken, whole or in chunks: the part of a Config that each_dot reads.
struct RowDots {
  i32 vector;         // elements of one access; divides the number of columns
  i32 units;          // of 16 bytes that a thread holds of each row
  i32 chunk_threads;  // threads of a chunk: a power of two up to 32, or all of the block
};

/// Columns of a chunk of rows of this dtype.
QN_HOST_DEVICE constexpr i64 dot_columns(const RowDots& d, DType dtype) { return i64(d.chunk_threads) * d.units * (16 / size_of(dtype)); }
/// Shared memory of each_dot: two slots of a value a warp, used in turn.
QN_HOST_DEVICE constexpr int row_dots_bytes(const RowDots& d, i32 threads) { return d.chunk_threads <= 32 ? 0 : 2 * 4 * (threads / 32); }

}  // namespace quern::rows
