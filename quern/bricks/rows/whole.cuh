// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Rows of which each output depends on sums or maxima of the whole row. An op says how a unit of its input is made and what each pass does
// with it. A row belongs to row_threads threads; each owns units of 16 bytes of the input's dtype: unit u belongs to thread u %
// row_threads. Units are kept in registers between passes, or made again in each where a row is too long or not aligned. Either way a
// thread meets its elements in the same order, so sums depend on dtype and columns alone: not on alignment, and not on other rows.
#pragma once
#include "quern/bricks/rows/spec.h"
#include "quern/kit/kit.cuh"

namespace quern::rows {

/// Loads `kUnit` elements from column `column` on; 0 past the end of the row. Accesses have kVector elements, or fewer where T is wide.
template <class T, int kUnit, int kVector> QN_DEVICE void load_unit(const T* row, i64 column, i64 columns, f32 (&v)[kUnit]) {
  constexpr int kStep = min_of(kVector, 16 / int(sizeof(T)));
  QN_UNROLL
  for (int a = 0; a < kUnit; a += kStep) {
    f32 part[kStep];
    if (column + a < columns) load_f32<T, kStep>(row + column + a, part);
    QN_UNROLL
    for (int j = 0; j < kStep; ++j) v[a + j] = column + a < columns ? part[j] : f32(0.f);
  }
}

/// Rounds and stores them, as far as the row goes.
template <class T, int kUnit, int kVector> QN_DEVICE void store_unit(T* row, i64 column, i64 columns, const f32 (&v)[kUnit]) {
  constexpr int kStep = min_of(kVector, 16 / int(sizeof(T)));
  QN_UNROLL
  for (int a = 0; a < kUnit; a += kStep) {
    f32 part[kStep];
    QN_UNROLL
    for (int j = 0; j < kStep; ++j) part[j] = v[a + j];
    if (column + a < columns) store_f32<T, kStep>(row + column + a, part);
  }
}

/// One row, of which a thread holds its units where kRow says so; made by load_row. make(column, v) writes the kUnit values of a unit, 0
/// past the end of the row.
template <RowUnits kRow, int kUnit, int kThreads, class Make> struct WholeRow {
  i64 columns;
  int lane;  ///< of the row's threads
  Make make;
  f32 held[kRow.held > 0 ? kRow.held : 1][kUnit];
};

template <RowUnits kRow, int kUnit, int kThreads, class Make> QN_DEVICE void load_row(WholeRow<kRow, kUnit, kThreads, Make>& row) {
  QN_UNROLL
  for (int i = 0; i < kRow.held; ++i) row.make(i64(i * kRow.row_threads + row.lane) * kUnit, row.held[i]);
}

/// Calls f(column, v) for each unit of the thread, in order. All threads of the row make the same number of calls, also past its end, so f
/// may exchange values between the lanes of a warp.
template <RowUnits kRow, int kUnit, int kThreads, class Make, class F> QN_DEVICE void each_unit(
    const WholeRow<kRow, kUnit, kThreads, Make>& row, const F& f) {
  if constexpr (kRow.held > 0) {
    QN_UNROLL
    for (int i = 0; i < kRow.held; ++i) f(i64(i * kRow.row_threads + row.lane) * kUnit, row.held[i]);
  } else {
    QN_NO_UNROLL
    for (i64 first = 0; first < row.columns; first += i64(kThreads) * kUnit) {
      f32 v[kUnit];
      row.make(first + i64(row.lane) * kUnit, v);
      f(first + i64(row.lane) * kUnit, v);
    }
  }
}

/// For sums and maxima over the threads of a row. Each has one barrier where a block has a row; consecutive ones use two slots in turn.
struct RowReducer {
  f32* scratch;  ///< row_reducer_bytes of shared memory
  int turn;
};
template <int kThreads> QN_DEVICE f32* next_slot(RowReducer& reducer) {
  reducer.turn ^= 1;
  return reducer.scratch + reducer.turn * (kThreads / 32);
}
template <RowUnits kRow, int kThreads> QN_DEVICE f32 row_sum(f32 v, RowReducer& reducer) {
  if constexpr (kRow.row_threads == 32) return warp_sum(v);
  else return block_sum<kThreads>(v, next_slot<kThreads>(reducer));
}
/// Of values >= 0; NaN where one is NaN.
template <RowUnits kRow, int kThreads> QN_DEVICE f32 row_max_nan(f32 v, RowReducer& reducer) {
  if constexpr (kRow.row_threads == 32) return warp_max_nan(v);
  else return block_max_nan<kThreads>(v, next_slot<kThreads>(reducer));
}

/// Calls f(row) for each row of the thread's; blocks walk over rows with the stride of the grid.
template <RowUnits kRow, int kThreads, class F> QN_DEVICE void each_row(i64 rows, const F& f) {
  constexpr int kRows = kThreads / kRow.row_threads;
  for (i64 row = i64(blockIdx.x) * kRows + threadIdx.x / kRow.row_threads; row < rows; row += i64(gridDim.x) * kRows) f(row);
}

}  // namespace quern::rows
