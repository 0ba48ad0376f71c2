// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Copies of tiles from global memory into swizzled shared tiles (SharedTile, MnTile), by cp.async where alignment allows.
#pragma once
#include "quern/kit/mma_tile.cuh"

namespace quern {

/// One access of a copy to shared memory: kVector elements of T (16 or 8 bits) by cp.async of 16, 8 or 4 bytes; of fewer, a chunk
/// of 16 bytes by loads of one element, stored at once.
template <class T, int kVector>
struct UnitCopy {
  static constexpr int kSize = int(sizeof(T)), kChunk = 16 / kSize;  ///< elements of a chunk of the tile
  static constexpr bool kSingle = kVector * kSize < 4;
  static constexpr int kUnit = kSingle ? kChunk : kVector;  ///< elements that a thread brings in one go
  static_assert(kSize <= 2);

  /// Brings `left` elements of a unit; the rest of it becomes zero.
  QN_DEVICE void issue_unit(const T* from, u8* tile, int to, int left) {
    if constexpr (kSingle) ptx::st_shared<u32x4>(tile + to, gather(from, left));
    else if constexpr (kVector == kChunk) ptx::cp_async_cg(ptx::smem_address(tile) + u32(to), from, left * kSize);
    else ptx::cp_async<kVector * kSize>(ptx::smem_address(tile) + u32(to), from, left * kSize);
  }
  /// The neighbouring elements of a chunk, of any alignment, those from `left` on zero.
  QN_DEVICE u32x4 gather(const T* from, int left) {
    using Raw = typename RawBytes<kSize>::type;
    constexpr int kWord = 4 / kSize;
    u32 words[4];
    QN_UNROLL
    for (int w = 0; w < 4; ++w) {
      words[w] = 0;
      QN_UNROLL
      for (int i = 0; i < kWord; ++i)
        if (kWord * w + i < left) words[w] |= u32(ptx::ld_global_nc<Raw>(from + kWord * w + i)) << (8 * kSize * i);
    }
    return {words[0], words[1], words[2], words[3]};
  }
};

/// A thread's part of copying tiles [kRows][kCols] out of rows of global memory, by units. Rows from `rows` on are not written
/// (see zero_rows).
template <class T, int kRows, int kCols, int kVector, int kThreads>
struct TileCopy {
  using Unit = UnitCopy<T, kVector>;
  static constexpr int kSize = Unit::kSize, kChunk = Unit::kChunk, kUnit = Unit::kUnit;
  using Tile = SharedTile<kRows, kCols * kSize / 2>;
  static constexpr int kPerRow = kCols / kUnit;
  static constexpr int kRowsPerPass = kThreads / kPerRow;
  static constexpr int kPasses = kRows / kRowsPerPass;
  static_assert(kThreads % kPerRow == 0 && kRows % kRowsPerPass == 0);

  const T* from;  ///< the thread's first element
  i64 pass;       ///< elements from one pass's row to the next one's
  int to;         ///< byte offset of the thread's first unit in the tile
  int col;        ///< of the thread in the tile
  int rows_left;  ///< rows that exist from the thread's first on

  /// `base`: element (0, 0) of the first tile.
  QN_DEVICE TileCopy start(const T* base, i64 stride, i64 rows) {
    const int row = int(threadIdx.x) / kPerRow, col = int(threadIdx.x) % kPerRow * kUnit;
    const int to = Tile::offset(row, col / kChunk) + col % kChunk * kSize;
    return {base + row * stride + col, stride * kRowsPerPass, to, col, int(min_of<i64>(rows, kRows)) - row};
  }

  /// Issues the copy of the tile that starts `k` columns further; columns from `cols` on become zero.
  QN_DEVICE void issue(const TileCopy& self, u8* tile, i64 k, int cols) {
    const T* from = self.from + k;
    if (cols >= kCols) {
      QN_UNROLL
      for (int i = 0; i < kPasses; ++i, from += self.pass)
        if (i * kRowsPerPass < self.rows_left) Unit::issue_unit(from, tile, self.to + further(self, i), kUnit);
    } else {
      // The last tile along k, once a call: a loop, as a copy of a variable size is 8 instructions
      const int left = max_of(0, min_of(kUnit, cols - self.col));
      if (left == 0) from -= self.col;  // a copy of no bytes still takes an address: one that exists
      QN_NO_UNROLL
      for (int i = 0; i < kPasses; ++i, from += self.pass)
        if (i * kRowsPerPass < self.rows_left) Unit::issue_unit(from, tile, self.to + further(self, i), left);
    }
  }

  /// Zeros the rows of a tile that `issue` leaves out: their products are never stored, but must not be uninitialised
  /// memory.
  QN_DEVICE void zero_rows(const TileCopy& self, u8* tile) {
    QN_NO_UNROLL
    for (int i = rows_of(self) * (kCols / kChunk) + int(threadIdx.x); i < kRows * (kCols / kChunk); i += kThreads)
      ptx::st_shared<u32x4>(tile + i * 16, u32x4{0, 0, 0, 0});
  }

 private:
  QN_DEVICE int rows_of(const TileCopy& self) { return self.rows_left + int(threadIdx.x) / kPerRow; }
  /// Bytes from the thread's first unit to the one of pass i: constant where passes lie a multiple of 8 rows apart, as
  /// the exchange of chunks repeats then.
  QN_DEVICE int further(const TileCopy& self, int i) {
    if constexpr (kRowsPerPass % 8 == 0) return i * kRowsPerPass * Tile::kRowBytes;
    const int row = int(threadIdx.x) / kPerRow;
    return Tile::offset(row + i * kRowsPerPass, self.col / kChunk) + self.col % kChunk * kSize - self.to;
  }
};

/// The same for an MN-major operand: tiles [kK][kMn] (MnTile) of 16 bits, whose rows are values of k. What lies behind the
/// operand's last element along M or N, and behind the last k, becomes zero.
template <class T, int kMn, int kK, int kVector, int kThreads>
struct MnTileCopy {
  using Unit = UnitCopy<T, kVector>;
  using Tile = MnTile<kK, kMn>;
  static constexpr int kUnit = Unit::kUnit, kPerRow = kMn / kUnit, kRowsPerPass = kThreads / kPerRow, kPasses = kK / kRowsPerPass;
  static_assert(Unit::kSize == 2 && kThreads % kPerRow == 0 && kK % kRowsPerPass == 0);

  const T* from;  ///< element (0, 0) of the first tile
  i64 stride;     ///< elements from a k to the next
  i64 inside;     ///< elements from there to the thread's first
  int to;         ///< byte offset of the thread's first unit in the tile
  int row;        ///< of the thread in the tile: a k
  int left;       ///< elements of the thread's units that exist

  /// `base`: element (0, 0) of the first tile; `count`: elements along M or N from there.
  QN_DEVICE MnTileCopy start(const T* base, i64 stride, i64 count) {
    const int row = int(threadIdx.x) / kPerRow, column = int(threadIdx.x) % kPerRow * kUnit;
    const int to = Tile::offset(row, column / 8) + column % 8 * 2;
    return {base, stride, row * stride + column, to, row, max_of(0, min_of(kUnit, int(min_of<i64>(count, kMn)) - column))};
  }

  /// Issues the copy of the tile that starts at `k`, of which `ks` values exist.
  QN_DEVICE void issue(const MnTileCopy& self, u8* tile, i64 k, int ks) {
    const T* const first = self.from + k * self.stride;
    if (ks >= kK && self.left == kUnit) {
      QN_UNROLL
      for (int i = 0; i < kPasses; ++i) Unit::issue_unit(first + self.inside + i * kRowsPerPass * self.stride, tile, place(self, i), kUnit);
    } else {
      // The last tile along k and tiles at the edge: a loop, as a copy of a variable size is 8 instructions
      QN_NO_UNROLL
      for (int i = 0; i < kPasses; ++i) {
        const int left = self.row + i * kRowsPerPass < ks ? self.left : 0;
        // A copy of no bytes still takes an address: one that exists
        Unit::issue_unit(left == 0 ? first : first + self.inside + i * kRowsPerPass * self.stride, tile, place(self, i), left);
      }
    }
  }

  /// For TileCopy's: nothing is left out here.
  QN_DEVICE void zero_rows(const MnTileCopy&, u8*) {}

 private:
  /// Byte offset of the thread's unit in pass i. Its row is below kRowsPerPass, a power of two: adding i of these changes other
  /// bits of the row.
  QN_DEVICE int place(const MnTileCopy& self, int i) {
    static_assert((kRowsPerPass & (kRowsPerPass - 1)) == 0 && kRowsPerPass * Tile::kRowBytes % 128 == 0);
    return (self.to ^ Tile::exchange(i * kRowsPerPass)) + i * kRowsPerPass * Tile::kRowBytes;
  }
};

}  // namespace quern
