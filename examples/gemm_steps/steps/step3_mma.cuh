// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The tensor cores: warps multiply 16 x 8 x 16 at a time by mma.sync, from tiles that cp.async copies past the registers.
#pragma once
#include "quern/kit/copy_tile.cuh"
#include "quern/kit/kit.cuh"
#include "steps/gemm_spec.h"

namespace quern::steps {

template <GemmConfig C>
QN_DEVICE void gemm_mma(const GemmParams& p) {
  using T = dtype_t<C.dtype>;
  using CopyA = TileCopy<T, C.tile_m, C.tile_k, 8, C.threads>;
  using CopyB = TileCopy<T, C.tile_n, C.tile_k, 8, C.threads>;
  using RowA = RowK32<typename CopyA::Tile>;
  using RowB = RowK32<typename CopyB::Tile>;
  constexpr int kM = C.tile_m / 2 / 16, kN = C.tile_n / 2 / 8;  // instructions of a warp, four of which share the tile
  constexpr auto L = gemm_smem(C);
  QN_SMEM(smem);
  const i64 tiles_n = (p.n + C.tile_n - 1) / C.tile_n;
  const i64 row = i64(blockIdx.x) / tiles_n * C.tile_m, column = i64(blockIdx.x) % tiles_n * C.tile_n;
  const int warp = int(ptx::warp_id()), lane = int(ptx::lane_id());
  const int warp_row = warp / 2 * (C.tile_m / 2), warp_column = warp % 2 * (C.tile_n / 2);
  const auto copy_a = CopyA::start(static_cast<const T*>(p.a) + row * p.a_stride, p.a_stride, p.m - row);
  const auto copy_b = CopyB::start(static_cast<const T*>(p.b) + column * p.b_stride, p.b_stride, p.n - column);
  CopyA::zero_rows(copy_a, smem + L.a);
  CopyB::zero_rows(copy_b, smem + L.b);
  const RowA row_a = RowA::of(warp_row + lane / 4);
  f32 sums[kM][kN][4] = {};
  for (i64 k = 0; k < p.k; k += C.tile_k) {
    const int columns = int(min_of<i64>(C.tile_k, p.k - k));
    CopyA::issue(copy_a, smem + L.a, k, columns);
    CopyB::issue(copy_b, smem + L.b, k, columns);
    ptx::cp_async_commit();
    ptx::cp_async_wait<0>();
    ptx::sync_block();
    QN_UNROLL
    for (int step = 0; step < C.tile_k / 32; ++step) {
      QN_UNROLL
      for (int j = 0; j < kN; ++j) {
        const u32x4 right = RowB::load(RowB::of(warp_column + 8 * j + lane / 4), smem + L.b, step);
        QN_UNROLL
        for (int i = 0; i < kM; ++i)
          mma_k32<T>(sums[i][j], RowA::load(row_a, smem + L.a, step, 16 * i), RowA::load(row_a, smem + L.a, step, 16 * i + 8), right);
      }
    }
    ptx::sync_block();
  }
  QN_UNROLL
  for (int i = 0; i < kM; ++i) {
    QN_UNROLL
    for (int j = 0; j < kN; ++j) {
      QN_UNROLL
      for (int x = 0; x < 4; ++x) {
        const i64 to = row + warp_row + 16 * i + lane / 4 + x / 2 * 8, at = column + warp_column + 8 * j + lane % 4 * 2 + x % 2;
        const f32 result[1] = {sums[i][j][x]};
        if (to < p.m && at < p.n) store_f32<T, 1>(static_cast<T*>(p.out) + to * p.out_stride + at, result);
      }
    }
  }
}

}  // namespace quern::steps
