// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Rows of which each output column depends on few inputs and on no other column: an op is then its formula.
// A block takes a chunk of threads * accesses * vector columns of one row, then the next chunk a grid further. Neighbouring threads have
// neighbouring accesses, and a thread loads all of its accesses before it stores the first.
#pragma once
#include "quern/bricks/rows/spec.h"
#include "quern/kit/kit.cuh"

namespace quern::rows {

/// Calls, for each chunk of the block's, begin(row, first column) by all threads, then load(row, column, held) for each access of the
/// thread's part of it, then store(row, column, held) for each; `column` is the access' first. Held is what an access keeps in registers
/// between the two. No load and no store is called past the last row or column.
template <class Held, RowChunks kChunks, int kThreads, class Begin, class Load, class Store>
QN_DEVICE void each_chunk(i64 rows, i64 columns, const Begin& begin, const Load& load, const Store& store) {
  constexpr i64 kColumns = chunk_columns(kChunks, kThreads), kStep = i64(kThreads) * kChunks.vector;
  const i64 chunks = ceil_div(columns, kColumns);
  for (i64 at = blockIdx.x; at < rows * chunks; at += gridDim.x) {
    const i64 row = at / chunks, first = (at - row * chunks) * kColumns + i64(threadIdx.x) * kChunks.vector;
    begin(row, first - i64(threadIdx.x) * kChunks.vector);
    Held held[kChunks.accesses];
    QN_UNROLL
    for (int a = 0; a < kChunks.accesses; ++a)
      if (first + a * kStep < columns) load(row, first + a * kStep, held[a]);
    QN_UNROLL
    for (int a = 0; a < kChunks.accesses; ++a)
      if (first + a * kStep < columns) store(row, first + a * kStep, held[a]);
  }
}
template <class Held, RowChunks kChunks, int kThreads, class Load, class Store>
QN_DEVICE void each_chunk(i64 rows, i64 columns, const Load& load, const Store& store) {
  each_chunk<Held, kChunks, kThreads>(rows, columns, [](i64, i64) {}, load, store);
}

}  // namespace quern::rows
