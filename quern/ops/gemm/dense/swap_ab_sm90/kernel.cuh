// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, j] = activation(sum_x a[i, x] b[j, x] + bias[j] + c[i, j]), for sm_90a and few rows of a: bricks/gemm/sm90/swap_ab.cuh
#pragma once
#include "quern/bricks/gemm/sm90/swap_ab_multiply.cuh"

namespace quern::gemm {

template <SwapAbConfig C>
QN_DEVICE void dense_swap_ab_sm90(const DenseSm90Params& p) {
  run_swapped<C.block, kDenseSm90TileK * C.block.tiles.chunks>(
      p, [&](const DenseSwapPart& part, u32 smem, u32 warpgroup, f32(&sums)[C.block.tiles.tile_m / 2]) {
        Consumer<C.block.tiles.stages> read{smem + dense_swap_smem(C.block.tiles).barriers};
        multiply_part<C.block>(part, smem, warpgroup, read, sums);
      });
}

}  // namespace quern::gemm
