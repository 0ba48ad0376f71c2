// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, j] = sum_x a[i, x] b[j, x] + bias[j]
// One block per [tile_m][tile_n] part of out and per split of K. Tiles of a and b pass through a ring of stages in shared memory,
// filled by cp.async stages - 1 tiles ahead, with one barrier a stage; warps multiply by mma.sync m16n8k16.
// An element is summed over its split's steps of 32 columns in ascending order, each step as kit/mma_tile.cuh states, whatever the tile.
#pragma once
#include "quern/kit/kit.cuh"
#include "quern/kit/copy_tile.cuh"
#include "quern/kit/mma_tile.cuh"
#include "quern/ops/gemm/dense_spec.h"
#include "quern/ops/gemm/dense_store.cuh"

namespace quern::gemm {

/// Sizes that follow from the Config.
template <DenseConfig C> struct DenseShape {
  using T = dtype_t<C.dtype>;
  static constexpr int kWarpM = C.tile_m / C.warps_m, kWarpN = C.tile_n / C.warps_n;  ///< a warp's part of out
  static constexpr int kTilesM = kWarpM / 16, kTilesN = kWarpN / 8;                   ///< in instructions
  using CopyA = TileCopy<T, C.tile_m, C.tile_k, C.vector, C.threads>;
  using CopyB = TileCopy<T, C.tile_n, C.tile_k, C.vector, C.threads>;
  static_assert(C.threads == 32 * C.warps_m * C.warps_n && kWarpM % 16 == 0 && kWarpN % 8 == 0);
};

/// What a block computes.
struct DenseWork {
  i64 row, column;   // of out, first
  i64 k_begin;
  i64 k_count;
};

/// Blocks walk over groups of 8 tiles along m, then over n: blocks that run together share tiles of a and b in the L2.
template <DenseConfig C> QN_DEVICE DenseWork work_of_block(const DenseParams& p) {
  constexpr u32 kGroup = 8;
  const u32 tiles_m = u32((p.m + C.tile_m - 1) / C.tile_m), tiles_n = u32((p.n + C.tile_n - 1) / C.tile_n);
  const u32 group = blockIdx.x / (kGroup * tiles_n), inside = blockIdx.x - group * kGroup * tiles_n;
  const u32 group_tiles = min_of(kGroup, tiles_m - group * kGroup);
  const u32 tile_n = inside / group_tiles;
  const u32 tile_m = group * kGroup + inside - tile_n * group_tiles;
  const i64 k_begin = i64(blockIdx.y) * p.split_k;
  return {i64(tile_m) * C.tile_m, i64(tile_n) * C.tile_n, k_begin, min_of(p.split_k, p.k - k_begin)};
}

/// Multiplies one stage into the accumulators.
template <DenseConfig C, int kM, int kN>
QN_DEVICE void multiply_stage(const u8* stage, int warp_row, int warp_column, f32 (&sums)[kM][kN][4]) {
  using S = DenseShape<C>;
  constexpr auto L = dense_smem(C);
  const int lane_row = int(ptx::lane_id()) / 4;
  QN_UNROLL
  for (int step = 0; step < C.tile_k / 32; ++step) {
    u32x4 b[kN];
    QN_UNROLL
    for (int j = 0; j < kN; ++j)
      b[j] = load_row_k32<typename S::CopyB::Tile>(stage + L.b, warp_column + fragment_column<kN>(j, lane_row), step);
    QN_UNROLL
    for (int i = 0; i < kM; ++i) {
      const int row = warp_row + 16 * i + lane_row;
      const u32x4 low = load_row_k32<typename S::CopyA::Tile>(stage + L.a, row, step);
      const u32x4 high = load_row_k32<typename S::CopyA::Tile>(stage + L.a, row + 8, step);
      QN_UNROLL
      for (int j = 0; j < kN; ++j) mma_k32<typename S::T>(sums[i][j], low, high, b[j]);
    }
  }
}

/// Sums the block's part of K.
template <DenseConfig C, int kM, int kN>
QN_DEVICE void sum_over_k(const DenseParams& p, const DenseWork& work, u8* smem, f32 (&sums)[kM][kN][4]) {
  using S = DenseShape<C>;
  using T = typename S::T;
  constexpr auto L = dense_smem(C);
  const int warp = int(threadIdx.x) / 32;
  const int warp_row = warp / C.warps_n * S::kWarpM, warp_column = warp % C.warps_n * S::kWarpN;
  const auto a = S::CopyA::start(static_cast<const T*>(p.a) + work.row * p.a_stride + work.k_begin, p.a_stride, p.m - work.row);
  const auto b = S::CopyB::start(static_cast<const T*>(p.b) + work.column * p.b_stride + work.k_begin, p.b_stride, p.n - work.column);
  const int steps = int((work.k_count + C.tile_k - 1) / C.tile_k);
  for (int slot = 0; slot < min_of(steps, C.stages); ++slot) {
    S::CopyA::zero_rows(a, smem + slot * L.stage + L.a);
    S::CopyB::zero_rows(b, smem + slot * L.stage + L.b);
  }
  // Copies run kAhead steps before the multiplications; one loop does both, so that the code of a copy stands once
  constexpr int kAhead = C.stages - 1;
  int slot = 0, next_slot = 0;
  for (int next = 0; next < steps + kAhead; ++next) {
    if (next >= kAhead) {
      // The tiles of step next - kAhead have landed for all, and nobody reads those of the step before any more
      ptx::cp_async_wait<kAhead - 1>();
      ptx::sync_block();
    }
    if (next < steps) {
      const i64 k = i64(next) * C.tile_k;
      const int columns = int(min_of<i64>(C.tile_k, work.k_count - k));
      S::CopyA::issue(a, smem + next_slot * L.stage + L.a, k, columns);
      S::CopyB::issue(b, smem + next_slot * L.stage + L.b, k, columns);
      next_slot = next_slot + 1 == C.stages ? 0 : next_slot + 1;
    }
    ptx::cp_async_commit();  // also an empty group, so that the count of groups is that of steps
    if (next >= kAhead) {
      multiply_stage<C>(smem + slot * L.stage, warp_row, warp_column, sums);
      slot = slot + 1 == C.stages ? 0 : slot + 1;
    }
  }
}

/// Writes a warp's accumulators to out with the bias, or as they are to the split's partial sums.
template <DenseConfig C, int kM, int kN>
QN_DEVICE void write_sums(const DenseParams& p, const DenseWork& work, const f32 (&sums)[kM][kN][4]) {
  using S = DenseShape<C>;
  using Out = dtype_t<C.out_dtype>;
  const int warp = int(threadIdx.x) / 32, lane = int(ptx::lane_id());
  const i64 column = work.column + warp % C.warps_n * S::kWarpN + fragment_column<kN>(0, 2 * (lane % 4));
  const i64 first_row = work.row + warp / C.warps_n * S::kWarpM + lane / 4;
  const i64 stride = p.partials != nullptr ? p.partial_stride : p.out_stride;
  const int columns = int(min_of<i64>(2 * kN, (p.partials != nullptr ? stride : p.n) - column));
  if (columns <= 0) return;
  f32 bias[2 * kN];
  load_bias(p.bias, p.bias_dtype, column, columns, bias);
  QN_UNROLL
  for (int i = 0; i < 2 * kM; ++i) {
    const i64 row = first_row + 8 * i;
    if (row >= p.m) continue;
    f32 values[2 * kN];
    QN_UNROLL
    for (int j = 0; j < kN; ++j) {
      values[2 * j] = sums[i / 2][j][i % 2 * 2] + bias[2 * j];
      values[2 * j + 1] = sums[i / 2][j][i % 2 * 2 + 1] + bias[2 * j + 1];
    }
    const i64 at = row * stride + column;
    if (p.partials != nullptr) store_aligned<f32>(static_cast<f32*>(p.partials) + i64(blockIdx.y) * p.m * stride + at, values);
    else store_columns<Out>(static_cast<Out*>(p.out) + at, columns, p.out_alignment, values);
  }
}

template <DenseConfig C> QN_DEVICE void dense_mma_ring(const DenseParams& p) {
  using S = DenseShape<C>;
  QN_SMEM(smem);
  const DenseWork work = work_of_block<C>(p);
  f32 sums[S::kTilesM][S::kTilesN][4];
  QN_UNROLL
  for (int i = 0; i < S::kTilesM; ++i) {
    QN_UNROLL
    for (int j = 0; j < S::kTilesN; ++j) {
      QN_UNROLL
      for (int x = 0; x < 4; ++x) sums[i][j][x] = 0.f;
    }
  }
  ptx::grid_dependency_wait();
  sum_over_k<C>(p, work, smem, sums);
  ptx::grid_launch_dependents();
  write_sums<C>(p, work, sums);
}

}  // namespace quern::gemm
