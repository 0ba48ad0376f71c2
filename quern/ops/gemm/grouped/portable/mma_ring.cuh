// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, j] = sum_x a[i, x] b[g, j, x] for the rows i of each group g
// Blocks stay on their SMs; each takes every gridDim.x-th tile, finds the group it is of, and makes it as dense_mma_ring does, as a
// part of the product of that group's matrices.
#pragma once
#include "quern/bricks/gemm/groups/walk.cuh"
#include "quern/bricks/gemm/mma/ring.cuh"
#include "quern/ops/gemm/grouped/spec.h"

namespace quern::gemm {

/// The product of one group's matrices.
template <DenseConfig C>
QN_DEVICE DenseParams params_of_group(const GroupedDenseParams& p, const GroupedTile& tile) {
  DenseParams own = p.gemm;
  own.a = static_cast<const dtype_t<C.dtype>*>(p.gemm.a) + tile.group * p.a_group + tile.begin * p.gemm.a_stride;
  own.b = static_cast<const dtype_t<C.dtype>*>(p.gemm.b) + tile.group * p.b_group;
  own.out = static_cast<dtype_t<C.out_dtype>*>(p.gemm.out) + tile.group * p.out_group + tile.begin * p.gemm.out_stride;
  own.m = tile.rows;
  return own;
}

template <DenseConfig C>
QN_DEVICE void grouped_mma_ring(const GroupedDenseParams& p) {
  static_assert(C.sum_parts_in_block == 0 && C.has_c == 0 && C.activation == 0);
  QN_SMEM(smem);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  each_grouped_tile<C.tile_m, C.tile_n, DenseParams>(
      p.rows, p.gemm.n, smem + dense_smem(C).bytes, [&](const GroupedTile& tile) { return params_of_group<C>(p, tile); },
      [&](const DenseParams& own, i64 row, i64 column) { make_part<C>(own, {row, column, 0, own.k}, smem); });
}

}  // namespace quern::gemm
