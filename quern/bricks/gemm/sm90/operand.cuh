// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// A tile of an operand in a stage on sm_90a: kRows rows of a or b and 128 bytes of K of each, as TMA lays it and wgmma reads it.
//
//   K-major    one box [kRows][128 bytes]; the next 16 columns of K are 32 bytes further
//   MN-major   boxes [64 of K][w], w = 64 rows, or all of fewer, behind each other; the next 16 of K are 16 rows of 2 w bytes further
//
// Both take 128 bytes a row, and 64 rows begin at a multiple of 8 KB.
#pragma once
#include "quern/bricks/gemm/sm90/spec.h"
#include "quern/kit/kit.cuh"
#include "quern/kit/wgmma.cuh"

namespace quern::gemm {

/// By one thread: the copy of a box, to each of `blocks` blocks of the cluster.
template <i32 blocks, class... Coordinates>
QN_DEVICE void load_box(u32 to, const TensorMap* map, u32 mbarrier, CachePolicy policy, Coordinates... at) {
  if constexpr (blocks == 1) ptx::tma_load(to, map, mbarrier, policy, at...);
  else ptx::tma_load_multicast(to, map, mbarrier, (1 << blocks) - 1, policy, at...);
}
/// By one thread: the copy of rows from `row` and columns of K from `k`.
template <Major kMajor, i32 kRows>
QN_DEVICE void load_operand(u32 to, const TensorMap* map, u32 mbarrier, CachePolicy policy, i32 k, i32 row) {
  if constexpr (kMajor == Major::k) {
    ptx::tma_load(to, map, mbarrier, policy, k, row);
  } else {
    constexpr i32 kWidth = dense_sm90_box(kRows);
    static_assert(kRows % kWidth == 0);
    QN_UNROLL
    for (i32 i = 0; i < kRows; i += kWidth) ptx::tma_load(to + u32(i) * 128, map, mbarrier, policy, row + i, k);
  }
}

// Rows behind the last one that TMA fills with zeros take 2.4 ns each: (4096, 14336) 55 us instead of 29 for 16 rows in boxes of 64, (4096,
// 7168) for 129 rows 58 us and for 256 22. So of a
//   fewer rows than a tile has   come in boxes of as many, K-major, and of swap_ab_sm90's several tiles all of the largest share; what no
//   copy brings is made zeros once the last of several tiles    begins earlier, among the rows of the tile before (rows_earlier()), and has
//   less than eight behind the last one; up to 31 where b's tile is narrower than 120 columns, as wgmma reads on over that

/// How many rows earlier the copies of a tile of `tile` rows, or kRows, from `row` on begin, of `rows` that there are. A multiple of eight:
/// the swizzle repeats every eight rows, 1024 bytes, to which a descriptor's start is aligned, and eight rows of an M-major a are 16 bytes,
/// to which TMA's coordinates are.
QN_DEVICE i32 rows_earlier(i32 row, i32 rows, i32 tile) {
  const i32 earlier = max_of(0, row + tile - rows) / 8 * 8;
  return earlier <= row ? earlier : 0;
}
template <i32 kRows>
QN_DEVICE i32 rows_earlier(i32 row, i32 rows) {
  return rows_earlier(row, rows, kRows);
}

/// Rows of a tile of a that a copy brings.
template <Major kMajor, i32 kRows>
QN_DEVICE i32 rows_of_box(i32 m) {
  return kMajor == Major::k ? min_of(kRows, m) : kRows;
}
/// By `threads` threads, of which `thread` is one: zeros for the other rows of the `chunks` tiles of each stage, of `pitch` bytes; then
/// their barrier. The first bytes of b are 1.5 us behind their request, and one row of 64 in 16 stages is 126 KB of zeros, 0.6 us of a
/// multiprocessor's stores: so nothing but these is in the loop.
template <Major kMajor, i32 kRows, i32 chunks, i32 stages, i32 pitch>
QN_DEVICE void zero_other_rows(u8* first, i32 m, i32 thread, i32 threads) {
  const i32 rows = rows_of_box<kMajor, kRows>(m);
  if (rows == kRows) return;
  QN_NO_UNROLL
  for (i32 i = rows * 8 + thread; i < kRows * 8; i += threads) {
    QN_UNROLL
    for (i32 tile = 0; tile < stages * chunks; ++tile)
      ptx::st_shared(first + tile / chunks * pitch + tile % chunks * kRows * 128 + 16 * i, u32x4{0, 0, 0, 0});
  }
  ptx::fence_proxy_async_shared();  // wgmma reads them
  ptx::bar_sync(kMultiplyBarrier, u32(threads));
}

/// By one thread: the copy of a tile of chunks of 128 bytes of K, those of eight rows in turn, from a chunk and a row on, which is a
/// multiple of 8. Requests for neighbouring memory go out behind each other.
QN_DEVICE void load_in_turn(u32 to, const TensorMap* map, u32 mbarrier, CachePolicy policy, i32 chunk, i32 row) {
  ptx::tma_load(to, map, mbarrier, policy, 0, 0, chunk, row / 8);
}
/// Of the chunk `chunk` of `chunks`, and of its rows from a multiple of 8 on.
QN_DEVICE MatrixDescriptor descriptor_in_turn(u32 address, u32 chunk, u32 chunks) {
  return k_major_descriptor(address + chunk * 1024, Swizzle::b128, chunks * 1024);
}

/// Of the tile at `address`, or of its rows from a multiple of 64 on, 128 bytes each.
template <Major kMajor, i32 kRows>
QN_DEVICE MatrixDescriptor operand_descriptor(u32 address) {
  if constexpr (kMajor == Major::k) return k_major_descriptor(address, Swizzle::b128);
  constexpr Swizzle kSwizzle = dense_sm90_swizzle(kRows);
  return mn_major_descriptor(address, kSwizzle, kDenseSm90TileK * width_of(kSwizzle), 8 * width_of(kSwizzle));
}
/// Bytes from the 16 columns of K of one instruction to the next's.
template <Major kMajor, i32 kRows>
constexpr u32 kOperandStep = kMajor == Major::k ? 32 : 16 * width_of(dense_sm90_swizzle(kRows));

}  // namespace quern::gemm
