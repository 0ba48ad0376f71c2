// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Dot products of pairs of rows, and what becomes of the pairs: each is read once. A row is one chunk or several; a chunk belongs to
// chunk_threads threads, each of which owns units of 16 bytes of the operands' dtype: unit u belongs to thread u % chunk_threads. The sum
// of a chunk: a thread adds its products by fma in ascending order, then lanes by a butterfly, then warps as in block_sum. It depends on
// dtype and columns alone: not on alignment, and not on other rows.
#pragma once
#include "quern/bricks/rows/spec.h"
#include "quern/kit/kit.cuh"

namespace quern::rows {

/// Calls, for each chunk of the block's, load(row, column, end, a, b) for each unit, which writes its kUnit values of both rows, 0 from
/// column `end` on; then sum(row, chunk, dot) by the first thread of the chunk; then unit(row, column, dot, a, b) for each unit that begins
/// within the row. `scratch`: row_dots_bytes of shared memory. A row of no columns has one chunk, whose sum is 0.
template <RowDots kDots, int kUnit, int kThreads, class Load, class Sum, class PerUnit>
QN_DEVICE void each_dot(i64 rows, i64 columns, f32* scratch, const Load& load, const Sum& sum, const PerUnit& unit) {
  constexpr int kAtOnce = kThreads / kDots.chunk_threads;  // chunks of a block
  constexpr i64 kColumns = i64(kDots.chunk_threads) * kDots.units * kUnit;
  const int lane = int(threadIdx.x) % kDots.chunk_threads;
  const i64 chunks = max_of<i64>(1, ceil_div(columns, kColumns));
  int slot = 0;
  // The loop's bounds are the block's, as all lanes of a warp meet in its sums; threads without a chunk hold zeros
  for (i64 first = i64(blockIdx.x) * kAtOnce; first < rows * chunks; first += i64(gridDim.x) * kAtOnce, slot ^= 1) {
    const i64 at = first + int(threadIdx.x) / kDots.chunk_threads;
    const bool mine = at < rows * chunks;
    const i64 row = chunks == 1 ? at : at / chunks, chunk = at - row * chunks, begin = chunk * kColumns + i64(lane) * kUnit,
              end = mine ? columns : i64(0);
    f32 a[kDots.units][kUnit], b[kDots.units][kUnit];
    QN_UNROLL
    for (int i = 0; i < kDots.units; ++i) load(row, begin + i * (kDots.chunk_threads * kUnit), end, a[i], b[i]);
    f32 dot = 0.f;
    QN_UNROLL
    for (int i = 0; i < kDots.units; ++i) {
      QN_UNROLL
      for (int j = 0; j < kUnit; ++j) dot = ptx::fma(a[i][j], b[i][j], dot);
    }
    if constexpr (kDots.chunk_threads <= 32) dot = warp_sum<kDots.chunk_threads>(dot);
    else dot = block_sum<kThreads>(dot, scratch + (slot != 0 ? kThreads / 32 : 0));
    if (mine && lane == 0) sum(row, chunk, dot);
    QN_UNROLL
    for (int i = 0; i < kDots.units; ++i) {
      const i64 column = begin + i * (kDots.chunk_threads * kUnit);
      if (column < end) unit(row, column, dot, a[i], b[i]);
    }
  }
}

}  // namespace quern::rows
