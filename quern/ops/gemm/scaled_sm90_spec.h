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
  i32 column_scales;  // 0: of b for blocks of 128 rows, or all; 1: of all of K, a's too; 2: of b for each row and 128 columns
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
/// Scales of a stage, or of a tile where they are of all of K: of each row of a, then of b's blocks or rows.
QN_HOST_DEVICE constexpr i32 scaled_sm90_scales(const ScaledSm90Config& c) {
  return c.tile_m + (c.column_scales == 0 ? scaled_sm90_blocks(c) : c.tile_n);
}
/// How many of them there are at a time: those of each stage, or of this tile and the next.
QN_HOST_DEVICE constexpr i32 scaled_sm90_scale_stages(const ScaledSm90Config& c) { return c.column_scales == 1 ? 2 : c.stages; }
/// Stages whose products are issued one ahead: for the sums of two beside the total, tiles of up to 128 columns leave registers.
QN_HOST_DEVICE constexpr i32 scaled_sm90_batch(const ScaledSm90Config& c) { return c.tile_n <= 128 ? 4 : 1; }

struct ScaledSm90Smem {
  int scales, barriers, bytes;
};
/// Behind gemm.dense's: the scales, and barriers of their own where they are not a stage's.
QN_HOST_DEVICE constexpr ScaledSm90Smem scaled_sm90_smem(const ScaledSm90Config& c) {
  const auto dense = dense_sm90_smem(tiles_of(c));
  const int end = dense.bytes + 4 * scaled_sm90_scale_stages(c) * scaled_sm90_scales(c);
  return {dense.bytes, c.column_scales == 1 ? end : dense.barriers, end + (c.column_scales == 1 ? int(pipeline_bytes(2)) : 0)};
}

struct ScaledSwapConfig {
  DType a_dtype;
  DType b_dtype;
  DType out_dtype;
  i32 tile_m;  // rows of a: columns of wgmma
  i32 tile_n;  // rows of b: 64 for each warpgroup that multiplies
  i32 stages;
  i32 threads;  // 2 tile_n that multiply, and a warp that loads
  i32 min_blocks;
  i32 of_all_k;  // 1: scales of all of K
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
