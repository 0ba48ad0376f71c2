// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Copies of row-major tiles from global memory into swizzled shared tiles (SharedTile), by cp.async where alignment
// allows.
#pragma once
#include "quern/kit/mma_tile.cuh"

namespace quern {

/// A thread's part of copying tiles [kRows][kCols] of T (16 bits) out of rows of global memory, kVector elements an
/// access (8, 4, 2: cp.async of 16, 8, 4 bytes; 1: loads of one element, stored at once). Rows from `rows` on are not
/// written (see zero_rows).
template <class T, int kRows, int kCols, int kVector, int kThreads>
struct TileCopy {
  using Tile = SharedTile<kRows, kCols>;
  static constexpr int kUnit = kVector == 1 ? 8 : kVector;  ///< elements that a thread brings in one go
  static constexpr int kPerRow = kCols / kUnit;
  static constexpr int kRowsPerPass = kThreads / kPerRow;
  static constexpr int kPasses = kRows / kRowsPerPass;
  static_assert(sizeof(T) == 2 && kThreads % kPerRow == 0 && kRows % kRowsPerPass == 0);

  const T* from;  ///< the thread's first element
  i64 pass;       ///< elements from one pass's row to the next one's
  int to;         ///< byte offset of the thread's first unit in the tile
  int col;        ///< of the thread in the tile
  int rows_left;  ///< rows that exist from the thread's first on

  /// `base`: element (0, 0) of the first tile.
  QN_DEVICE TileCopy start(const T* base, i64 stride, i64 rows) {
    const int row = int(threadIdx.x) / kPerRow, col = int(threadIdx.x) % kPerRow * kUnit;
    const int to = Tile::offset(row, col / 8) + col % 8 * 2;
    return {base + row * stride + col, stride * kRowsPerPass, to, col, int(min_of<i64>(rows, kRows)) - row};
  }

  /// Issues the copy of the tile that starts `k` columns further; columns from `cols` on become zero.
  QN_DEVICE void issue(const TileCopy& self, u8* tile, i64 k, int cols) {
    const T* from = self.from + k;
    if (cols >= kCols) {
      QN_UNROLL
      for (int i = 0; i < kPasses; ++i, from += self.pass)
        if (i * kRowsPerPass < self.rows_left) issue_unit(from, tile, self.to + further(self, i), kUnit);
    } else {
      // The last tile along k, once a call: a loop, as a copy of a variable size is 8 instructions
      const int left = max_of(0, min_of(kUnit, cols - self.col));
      if (left == 0) from -= self.col;  // a copy of no bytes still takes an address: one that exists
      QN_NO_UNROLL
      for (int i = 0; i < kPasses; ++i, from += self.pass)
        if (i * kRowsPerPass < self.rows_left) issue_unit(from, tile, self.to + further(self, i), left);
    }
  }

  /// Zeros the rows of a tile that `issue` leaves out: their products are never stored, but must not be uninitialised
  /// memory.
  QN_DEVICE void zero_rows(const TileCopy& self, u8* tile) {
    QN_NO_UNROLL
    for (int i = rows_of(self) * (kCols / 8) + int(threadIdx.x); i < kRows * (kCols / 8); i += kThreads)
      ptx::st_shared<u32x4>(tile + i * 16, u32x4{0, 0, 0, 0});
  }

 private:
  QN_DEVICE int rows_of(const TileCopy& self) { return self.rows_left + int(threadIdx.x) / kPerRow; }
  /// Bytes from the thread's first unit to the one of pass i: constant where passes lie a multiple of 8 rows apart, as
  /// the exchange of chunks repeats then.
  QN_DEVICE int further(const TileCopy& self, int i) {
    if constexpr (kRowsPerPass % 8 == 0) return i * kRowsPerPass * Tile::kRowBytes;
    const int row = int(threadIdx.x) / kPerRow;
    return Tile::offset(row + i * kRowsPerPass, self.col / 8) + self.col % 8 * 2 - self.to;
  }
  /// Brings `left` elements of a unit; the rest of it becomes zero.
  QN_DEVICE void issue_unit(const T* from, u8* tile, int to, int left) {
    if constexpr (kVector == 1)
      ptx::st_shared<u32x4>(tile + to, gather(from, left));
    else if constexpr (kVector == 8)
      ptx::cp_async_cg(ptx::smem_address(tile) + u32(to), from, left * 2);
    else
      ptx::cp_async<kVector * 2>(ptx::smem_address(tile) + u32(to), from, left * 2);
  }
  /// Eight neighbouring elements of any alignment, those from `left` on zero.
  QN_DEVICE u32x4 gather(const T* from, int left) {
    u32 words[4];
    QN_UNROLL
    for (int w = 0; w < 4; ++w) {
      const u32 low = 2 * w < left ? ptx::ld_global_nc<u16>(from + 2 * w) : u16(0);
      const u32 high = 2 * w + 1 < left ? ptx::ld_global_nc<u16>(from + 2 * w + 1) : u16(0);
      words[w] = low | high << 16;
    }
    return {words[0], words[1], words[2], words[3]};
  }
};

}  // namespace quern
