// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, j] = sum_x scales_a(i, x) scales_b(j, x) a[i, x] b[j, x] + bias[j] + c[i, j]
// One block per tile of out: bricks/gemm/mma/scaled_ring.cuh.
#pragma once
#include "quern/bricks/gemm/mma/scaled_ring.cuh"
#include "quern/bricks/gemm/tile_order.cuh"

namespace quern::gemm {

template <ScaledConfig C>
QN_DEVICE ScaledWork scaled_work_of_block(const ScaledParams& p) {
  const u32 tiles_m = u32((p.m + C.tile_m - 1) / C.tile_m), tiles_n = u32((p.n + C.tile_n - 1) / C.tile_n);
  const TilePlace tile = tile_in_order<u64>(blockIdx.x, tiles_m, tiles_n);
  return {i64(tile.m) * C.tile_m, i64(tile.n) * C.tile_n};
}

template <ScaledConfig C>
QN_DEVICE void scaled_mma_ring(const ScaledParams& p) {
  QN_SMEM(smem);
  const ScaledWork work = scaled_work_of_block<C>(p);
  ptx::grid_dependency_wait();
  make_scaled_part<C>(p, work, smem);
}

}  // namespace quern::gemm
