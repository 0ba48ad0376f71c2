// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Tiles of 16-bit elements in shared memory and the fragments that mma.sync m16n8k16 takes from them, by plain 16-byte
// loads.
//
// The order of K. mma.sync sums 16 products whose order along K is free as long as A and B agree. Here 32 columns of K
// are one step: lane t of four takes the 16 bytes k = 8t .. 8t+7 of its row, and the step's two instructions sum
//     h = 0: k in {8t, .. 8t+3 | t = 0..3}        h = 1: k in {8t+4, .. 8t+7 | t = 0..3}.
// So one ld.shared.v4 brings what ldmatrix.x4 brings, without a collective (on the emulated device a load costs nothing
// beside a collective), and the order of sums does not depend on a tile's shape or on a row's place in it.
//
// The order of N is free too: `fragment_column` gives each lane neighbouring columns, so that results leave by wide
// stores.
#pragma once
#include "quern/kit/vec.cuh"

namespace quern {

/// A tile [kRows][kCols] of 16-bit elements in shared memory, kCols 32, 64 or a multiple of 64. Chunks of 16 bytes are
/// exchanged within 128 bytes by XOR with bits of the row, so that these are free of bank conflicts: loads by RowK32,
/// ldmatrix of 8 consecutive rows (plain or transposed), and stores of a row's consecutive chunks by consecutive lanes.
/// The tile starts at a multiple of 128.
template <int kRows, int kCols>
struct SharedTile {
  static_assert(kCols == 32 || kCols % 64 == 0);
  static constexpr int kRowBytes = kCols * 2;
  static constexpr int kBytes = kRows * kRowBytes;
  /// Byte offset of chunk `chunk` (8 elements) of a row.
  QN_DEVICE int offset(int row, int chunk) {
    // Of two neighbouring rows, chunks 0..3 must fall into different halves of 128 bytes: the row's lowest bit is the
    // mask's highest.
    if constexpr (kCols == 32) return row * kRowBytes + (chunk ^ (row >> 1 & 3)) * 16;
    else return row * kRowBytes + (chunk ^ ((row & 1) << 2 | (row >> 1 & 3))) * 16;
  }
};

/// Where a lane finds its 16 bytes of a row in the steps of 32 columns: elements k = 32 step + 8 (lane % 4) .. +7, of
/// which words 0, 1 belong to h = 0 and 2, 3 to h = 1. Made once per row outside the loop; a step is then one XOR and
/// constants.
template <class Tile>
struct RowK32 {
  int even, odd;  ///< byte offsets of steps 0 and 1

  QN_DEVICE RowK32 of(int row) {
    const int even = Tile::offset(row, int(ptx::lane_id() % 4));
    return {even, even ^ 64};
  }
  /// `rows_further` must be a multiple of 8: the exchange of chunks repeats then.
  QN_DEVICE u32x4 load(const RowK32& self, const u8* tile, int step, int rows_further = 0) {
    const int constant = (step >> 1) * 128 + rows_further * Tile::kRowBytes;
    return ptx::ld_shared<u32x4>(tile + (step & 1 ? self.odd : self.even) + constant);
  }
};

/// A tile of an MN-major operand: row k of kK holds kMn neighbours along M or N, kMn 16, 32 or a multiple of 64, kK a multiple
/// of 32. Chunks of 16 bytes are exchanged within 128 bytes by XOR with bits 3 and 4 of k, so that these are free of bank
/// conflicts: loads by ColumnsK32, whose four lanes of a row lie 8 rows apart, and stores of a row's consecutive chunks by
/// consecutive lanes.
template <int kK, int kMn>
struct MnTile {
  static_assert(kK % 32 == 0 && (kMn == 16 || kMn == 32 || kMn % 64 == 0));
  static constexpr int kRowBytes = kMn * 2;
  /// Byte offset of chunk `chunk` (8 elements) of row k.
  QN_DEVICE int offset(int k, int chunk) { return (k * kRowBytes + chunk * 16) ^ exchange(k); }
  /// What the exchange does to offsets in row k.
  QN_DEVICE constexpr int exchange(int k) { return (k >> 3 & 3) << 5; }
};

/// What RowK32 is for a tile of a K-major operand: here a lane has kCount rows of the operand, neighbours in memory, with the
/// same elements of each, in the same order.
template <class Tile, int kCount>
struct ColumnsK32 {
  static_assert(kCount == 2 || kCount == 4 || kCount == 8);
  int first;  ///< byte offset of k = 8 (lane % 4)

  /// `row`: the first of the lane's rows, a multiple of kCount.
  QN_DEVICE ColumnsK32 of(int row) { return {Tile::offset(8 * int(ptx::lane_id() % 4), row / 8) + row % 8 * 2}; }
  QN_DEVICE void load(const ColumnsK32& self, const u8* tile, int step, u32x4 (&rows)[kCount]) {
    QN_UNROLL
    for (int w = 0; w < 4; ++w) {
      Packed<bf16, kCount> of_k[2];
      QN_UNROLL
      for (int i = 0; i < 2; ++i) {
        // Rows of 32 and 64 bytes share 128 bytes, within which the exchange takes place
        const int further = (2 * w + i) * Tile::kRowBytes, line = further / 128 * 128;
        of_k[i].raw =
            ptx::ld_shared<typename Packed<bf16, kCount>::Raw>(tile + (self.first ^ (further - line)) + line + 32 * step * Tile::kRowBytes);
      }
      QN_UNROLL
      for (int r = 0; r < kCount; ++r) {
        const u32 even = word(of_k[0].raw, r / 2), odd = word(of_k[1].raw, r / 2);
        word(rows[r], w) = r % 2 == 0 ? (even & 0xffffu) | odd << 16 : even >> 16 | (odd & 0xffff0000u);
      }
    }
  }
};

QN_DEVICE void mma_k16(f32 (&d)[4], const u32 (&a)[4], const u32 (&b)[2], bf16) { ptx::mma_m16n8k16_bf16(d, a, b); }
QN_DEVICE void mma_k16(f32 (&d)[4], const u32 (&a)[4], const u32 (&b)[2], f16) { ptx::mma_m16n8k16_f16(d, a, b); }
/// D[16][8] += A[16][16] B[16][8] with f32 accumulators, T being bf16 or f16.
template <class T>
QN_DEVICE void mma_k16(f32 (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  mma_k16(d, a, b, T{});
}

/// One step of 32 along K. `a_low`, `a_high`: what RowK32 loads of rows lane / 4 and lane / 4 + 8 of A; `b`: of the row
/// of B (stored [n][k]) that is column lane / 4.
template <class T>
QN_DEVICE void mma_k32(f32 (&d)[4], const u32x4& a_low, const u32x4& a_high, const u32x4& b) {
  mma_k16<T>(d, {a_low.x, a_high.x, a_low.y, a_high.y}, {b.x, b.y});
  mma_k16<T>(d, {a_low.z, a_high.z, a_low.w, a_high.w}, {b.z, b.w});
}

/// A warp's accumulators of 8 * kTiles columns: column c (0..7) of instruction tile j stands for this column of the
/// warp's. A lane's results d[0], d[1] of the tiles 0..kTiles-1 are then the 2 * kTiles neighbouring columns from 2 *
/// kTiles * (lane % 4).
template <int kTiles>
QN_DEVICE int fragment_column(int j, int c) {
  return (c >> 1) * 2 * kTiles + 2 * j + (c & 1);
}

}  // namespace quern
