// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, j] = activation(sum_x a[i, x] b[j, x] + bias[j] + c[i, j])
// One block per tile of out and per split of K: bricks/gemm/mma/ring.cuh.
#pragma once
#include "quern/bricks/gemm/mma/ring.cuh"
#include "quern/bricks/gemm/tile_order.cuh"

namespace quern::gemm {

template <DenseConfig C>
QN_DEVICE DenseWork work_of_block(const DenseParams& p) {
  const u32 tiles_m = u32((p.m + C.tile_m - 1) / C.tile_m), tiles_n = u32((p.n + C.tile_n - 1) / C.tile_n);
  const TilePlace tile = tile_in_order<u64>(blockIdx.x, tiles_m, tiles_n);  // 8 tiles_n are past 32 bits for n beyond 2^35
  const i64 k_begin = i64(blockIdx.y) * p.split_k;
  return {i64(tile.m) * C.tile_m, i64(tile.n) * C.tile_n, k_begin, C.sum_parts_in_block ? p.k : min_of(p.split_k, p.k - k_begin)};
}

template <DenseConfig C>
QN_DEVICE void dense_mma_ring(const DenseParams& p) {
  QN_SMEM(smem);
  const DenseWork work = work_of_block<C>(p);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  make_part<C>(p, work, smem);
}

}  // namespace quern::gemm
