// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Narrow tiles of up to 16 rows (bricks/gemm/sm90/narrow.cuh), which mma.sync multiplies: wgmma takes 64 rows of a, with memory for each of
// them in every stage. Here a stage has the rows of a that there are, and more columns of K, which memory is faster at. Each of four warps
// has every fourth chunk of 64 columns, and all add their sums up through shared memory at the end of a tile.
#pragma once
#include "quern/bricks/gemm/sm90/swap_ab.cuh"
#include "quern/bricks/gemm/sm90/tiles.cuh"

namespace quern::gemm {

/// By a warp: the products of chunk `chunk` of a stage are added to its sums, of 8 columns of the tile in each sums[j] as mma.sync has
/// them. A stage has of a `[chunks][m][64]`, swizzled as one tile of chunks * m rows, and of b what load_in_turn() brings.
template <BlockSm90 C>
QN_DEVICE void multiply_chunk(u32 stage, u32 chunk, i32 m, f32 (&sums)[C.tiles.tile_n / 8][4]) {
  constexpr auto L = dense_sm90_smem(C);
  const u32 lane = ptx::lane_id(), eighth = lane % 8;
  // A lane beyond the last row reads that one: what becomes of it is not stored
  const u32 row = chunk * u32(m) + u32(min_of(i32(lane % kNarrowMmaRows), m - 1)), a = stage + L.a + row * 128;
  u32 left[4][4];
  QN_UNROLL
  for (u32 k = 0; k < 4; ++k) ptx::ldmatrix_x4(left[k], a + ((2 * k + lane / 16) ^ row % 8) * 16);
  QN_UNROLL
  for (u32 j = 0; j < u32(C.tiles.tile_n / 8); ++j) {
    const u32 b = stage + L.b + (j * C.tiles.chunks + chunk) * 1024 + eighth * 128;
    QN_UNROLL
    for (u32 half = 0; half < 2; ++half) {
      u32 right[4];
      ptx::ldmatrix_x4(right, b + ((4 * half + lane / 8) ^ eighth) * 16);
      QN_UNROLL
      for (u32 k = 0; k < 2; ++k) {
        const u32 pair[2] = {right[2 * k], right[2 * k + 1]};
        if constexpr (C.ending.dtype == DType::bf16) ptx::mma_m16n8k16_bf16(sums[j], left[2 * half + k], pair);
        else ptx::mma_m16n8k16_f16(sums[j], left[2 * half + k], pair);
      }
    }
  }
}

/// By the four warps: their sums of a tile added in the order of the warps, and its results stored, 8 columns a thread at a time.
template <BlockSm90 C>
QN_DEVICE void add_and_store_few_rows(const DenseSm90Params& p, i32 first_column, u8* memory, const f32 (&sums)[C.tiles.tile_n / 8][4]) {
  constexpr auto L = dense_sm90_smem(C);
  constexpr i32 kVectors = C.tiles.tile_n / 8, kPitch = 4 * narrow_mma_pitch(C), kWarpSums = kNarrowMmaRows * kPitch;
  const i32 lane = i32(ptx::lane_id());
  u8* const place = memory + L.halves + i32(ptx::warp_id()) * kWarpSums + lane / 4 * kPitch + lane % 4 * 8;
  QN_UNROLL
  for (i32 half = 0; half < 2; ++half) {
    if (lane / 4 + 8 * half >= p.m) continue;
    QN_UNROLL
    for (i32 j = 0; j < kVectors; ++j)
      ptx::st_shared(place + 8 * half * kPitch + 32 * j, u32x2{ptx::bits_of(sums[j][2 * half]), ptx::bits_of(sums[j][2 * half + 1])});
  }
  ptx::bar_sync(kMultiplyBarrier, kWarpgroupSize);
  ptx::grid_dependency_wait();
  QN_NO_UNROLL
  for (i32 v = i32(threadIdx.x); v < p.m * kVectors; v += kWarpgroupSize) {
    const i32 row = v / kVectors, of_tile = v % kVectors * 8, column = first_column + of_tile;
    if (column >= p.n) continue;
    f32 bias[8], total[8];
    load_bias<dtype_t<C.ending.dtype>>(p.bias, p.bias_dtype, column, 8, bias);
    const u8* const from = memory + L.halves + row * kPitch + 4 * of_tile;
    load_sums(from, total);
    QN_UNROLL
    for (i32 warp = 1; warp < 4; ++warp) {
      f32 more[8];
      load_sums(from + warp * kWarpSums, more);
      QN_UNROLL
      for (i32 i = 0; i < 8; ++i) total[i] = total[i] + more[i];
    }
    finish_and_store<C.ending>(p, row, column, bias, total);
  }
  if constexpr (C.narrow.walk == 1) ptx::bar_sync(kMultiplyBarrier, kWarpgroupSize);  // the next tile's sums come there
}

/// By the four warps: a tile.
template <BlockSm90 C>
QN_DEVICE void make_few_rows(const DenseSm90Params& p, const DenseSwapPart& part, u8* memory, u32 smem, Consumer<C.tiles.stages>& read) {
  static_assert(C.tiles.tile_m == kNarrowMmaRows && C.tiles.chunks % 4 == 0 && C.narrow.warpgroups_n == 1 && C.narrow.halves == 0);
  f32 sums[C.tiles.tile_n / 8][4];
  zero(sums);
  QN_NO_UNROLL
  for (i32 step = 0; step < part.steps; ++step) {
    begin_read(read);
    QN_UNROLL
    for (u32 chunk = 0; chunk < u32(C.tiles.chunks); chunk += 4)
      multiply_chunk<C>(smem + read.stage * u32(dense_sm90_smem(C).stage), chunk + ptx::warp_id(), p.m, sums);
    end_read(read);
  }
  add_and_store_few_rows<C>(p, part.column, memory, sums);
}

}  // namespace quern::gemm
