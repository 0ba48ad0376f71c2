// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// gemm.scaled on Hopper: the structure of gemm.dense's kernels, with stages of 128 columns of 8 bits and a second set of sums.
#pragma once
#include "quern/ops/gemm/dense_sm90_spec.h"
#include "quern/ops/gemm/scaled_spec.h"

namespace quern::gemm {

struct ScaledSm90Config {
  DType a_dtype;
  DType b_dtype;
  DType out_dtype;
  i32 tile_m;  // a block's part of out
  i32 tile_n;
  i32 stages;
  i32 column_scales;  // of b: 0: a scale for blocks of 128 rows, or all; 1: for each row, of all of K; 2: for each row and 128 columns
  i32 threads;        // 128 that load, 256 that multiply
  i32 has_c;
};
/// The tiles, ring and stores, which are gemm.dense's.
QN_HOST_DEVICE constexpr DenseSm90Config tiles_of(const ScaledSm90Config& c) {
  return {DType::bf16, c.out_dtype, c.tile_m, c.tile_n, c.stages, 0, 0, c.threads, c.has_c, i32(Activation::none), Major::k, Major::k};
}

/// Columns of a tile that share a block of 128 rows of b for certain: tiles begin at multiples of them.
QN_HOST_DEVICE constexpr i32 scaled_sm90_columns(const ScaledSm90Config& c) {
  const i32 power = c.tile_n & -c.tile_n;
  return power < 128 ? power : 128;
}
/// Blocks of 128 rows of b that a tile can touch.
QN_HOST_DEVICE constexpr i32 scaled_sm90_blocks(const ScaledSm90Config& c) { return (c.tile_n - scaled_sm90_columns(c) + 255) / 128; }
/// Threads that share a ring of scales: a warpgroup where each row of b has a scale in each stage, else a warp.
QN_HOST_DEVICE constexpr i32 scaled_sm90_sharers(const ScaledSm90Config& c) { return c.column_scales == 2 ? 128 : 32; }
/// Their scales of a stage: of 64 or 16 rows of a, then those of b, of which there are none where columns are scaled at the end.
QN_HOST_DEVICE constexpr i32 scaled_sm90_rows(const ScaledSm90Config& c) { return scaled_sm90_sharers(c) / 2; }
QN_HOST_DEVICE constexpr i32 scaled_sm90_scales(const ScaledSm90Config& c) {
  return scaled_sm90_rows(c) + (c.column_scales == 2 ? c.tile_n : c.column_scales == 1 ? 0 : scaled_sm90_blocks(c));
}
/// Stages of the rings of scales: 8 of 128 columns take longer than a load from memory.
constexpr i32 kScaledSm90Depth = 8;
/// Behind gemm.dense's: the rings of scales of 256 threads.
QN_HOST_DEVICE constexpr i32 scaled_sm90_bytes(const ScaledSm90Config& c) {
  return dense_sm90_smem(tiles_of(c)).bytes + 256 / scaled_sm90_sharers(c) * 4 * scaled_sm90_scales(c) * kScaledSm90Depth;
}
/// Named barriers of the warpgroups that share a ring, the first one's: behind those of the turns.
constexpr int kScaledSm90Barrier = kDenseSm90TurnBarrier + 2;

struct ScaledSwapConfig {
  DType a_dtype;
  DType b_dtype;
  DType out_dtype;
  i32 tile_m;  // rows of a: columns of wgmma
  i32 tile_n;  // rows of b: 64 for each warpgroup that multiplies
  i32 stages;
  i32 threads;  // 2 tile_n that multiply, and a warp that loads
  i32 min_blocks;
  i32 has_c;
};
QN_HOST_DEVICE constexpr DenseSwapConfig tiles_of(const ScaledSwapConfig& c) {
  return {DType::bf16, c.out_dtype, c.tile_m, c.tile_n, c.stages, c.threads, c.min_blocks, c.has_c, i32(Activation::none), Major::k, Major::k};
}

/// Stages that are multiplied one behind the other before their sums are scaled: few rows of a are little work beside what a wait for it takes.
QN_HOST_DEVICE constexpr i32 scaled_swap_at_once(const DenseSwapConfig& c) {
  return c.tile_m >= 64 ? 1 : c.tile_m >= 32 || c.tile_n > 64 ? 2 : 4;
}
QN_HOST_DEVICE constexpr i32 scaled_swap_depth(const DenseSwapConfig& c) { return scaled_swap_at_once(c) == 4 ? 16 : 8; }
/// Scales of a stage of a warpgroup: of its 64 rows of b, then of the rows of a.
QN_HOST_DEVICE constexpr i32 scaled_swap_scales(const DenseSwapConfig& c) { return 64 + c.tile_m; }
/// Behind gemm.dense's: a ring of scales for each warpgroup that multiplies.
QN_HOST_DEVICE constexpr i32 scaled_swap_bytes(const DenseSwapConfig& c) {
  return dense_swap_smem(c).bytes + c.threads / 128 * 4 * scaled_swap_scales(c) * scaled_swap_depth(c);
}
/// Named barriers of these warpgroups, the first one's.
constexpr int kScaledSwapBarrier = kDenseSwapBarrier + 1;

struct ScaledSm90Params {
  DenseSm90Params gemm;  // boxes of 128 columns
  Scales scales_a, scales_b;
};

}  // namespace quern::gemm
