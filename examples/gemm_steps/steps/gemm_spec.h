// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/abi.h"

namespace quern::steps {

/// Of every step; a tile is a block's part of out.
struct GemmConfig {
  DType dtype;
  i32 tile_m, tile_n;
  i32 tile_k;  // columns of a and b that are in shared memory at a time, or in a stage
  i32 stages;
  i32 threads;
};

/// Steps 1 to 3 read a and b by their addresses.
struct GemmParams {
  const void* a;
  const void* b;
  void* out;
  i64 a_stride, b_stride, out_stride;  // elements from row to row
  i64 m, n, k;
};

/// Steps 4 to 6 by tensor maps.
struct GemmMapParams {
  TensorMap a;  // [m, k], boxes [tile_m, tile_k]
  TensorMap b;  // [n, k], boxes [tile_n, tile_k]
  void* out;
  i64 out_stride;
  i32 m, n, k;
};

struct GemmSmem {
  int a, b, stage, barriers, bytes;
};
/// Stages of a tile of a, then one of b; behind them two barriers for each.
QN_HOST_DEVICE constexpr GemmSmem gemm_smem(const GemmConfig& c) {
  const int a = c.tile_m * c.tile_k * 2, stage = a + c.tile_n * c.tile_k * 2;
  return {0, a, stage, stage * c.stages, stage * c.stages + 16 * c.stages};
}

}  // namespace quern::steps
