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

struct ScaledSm90Params {
  DenseSm90Params gemm;  // boxes of 128 columns
  Scales scales_a, scales_b;
};

}  // namespace quern::gemm
