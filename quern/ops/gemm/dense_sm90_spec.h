// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// gemm.dense on Hopper: TMA fills a ring of stages, warpgroups multiply from it.
#pragma once
#include "quern/kit/abi.h"

namespace quern::gemm {

/// Columns of a and b in a stage: 128 bytes, the widest row that a tensor map swizzles.
constexpr i32 kDenseSm90TileK = 64;

struct DenseSm90Config {
  DType dtype;  // of a and b
  DType out_dtype;
  i32 tile_m;  // a block's part of out: 64 rows for each warpgroup that multiplies
  i32 tile_n;
  i32 stages;
  i32 threads;  // 128 that load, and 2 tile_m that multiply
};

struct DenseSm90Params {
  TensorMap a;       // [m, k], boxes [tile_m, 64]
  TensorMap b;       // [n, k], boxes [tile_n, 64]
  const void* bias;  // [n] or null
  void* out;         // [m, n], rows aligned to 16 bytes
  i64 out_stride;    // elements from row to row
  i32 m, n, k;       // n a multiple of 8
  DType bias_dtype;  // f32, or that of a
};

struct DenseSm90Smem {
  int a, b, stage, barriers, bytes;
};
/// Stages of a tile of a, then one of b; a pair of barriers for each stage.
QN_HOST_DEVICE constexpr DenseSm90Smem dense_sm90_smem(const DenseSm90Config& c) {
  const int a = c.tile_m * kDenseSm90TileK * 2, stage = a + c.tile_n * kDenseSm90TileK * 2;
  return {0, a, stage, stage * c.stages, stage * c.stages + int(pipeline_bytes(c.stages))};
}

}  // namespace quern::gemm
