// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, j] = sum_x scales_a(i, x) scales_b(g, j, x) a[i, x] b[g, j, x] for the rows i of each group g
// ops/gemm/grouped/portable/mma_ring.cuh with the tiles of scaled_mma_ring.
#pragma once
#include "quern/bricks/gemm/groups/walk.cuh"
#include "quern/bricks/gemm/mma/scaled_ring.cuh"
#include "quern/ops/gemm/grouped/spec.h"

namespace quern::gemm {

/// The product of one group's matrices.
template <ScaledConfig C>
QN_DEVICE ScaledParams params_of_group(const GroupedScaledParams& p, const GroupedTile& tile) {
  using S = ScaledShape<C>;
  ScaledParams own = p.gemm;
  own.a = static_cast<const typename S::TA*>(p.gemm.a) + tile.group * p.a_group + tile.begin * p.gemm.a_stride;
  own.b = static_cast<const typename S::TB*>(p.gemm.b) + tile.group * p.b_group;
  own.out = static_cast<typename S::Out*>(p.gemm.out) + tile.group * p.out_group + tile.begin * p.gemm.out_stride;
  own.scales_a.data =
      static_cast<const f32*>(p.gemm.scales_a.data) + tile.group * p.scales_a_group + tile.begin * p.gemm.scales_a.row_stride;
  own.scales_b.data = static_cast<const f32*>(p.gemm.scales_b.data) + tile.group * p.scales_b_group;
  own.m = tile.rows;
  return own;
}

template <ScaledConfig C>
QN_DEVICE void grouped_scaled_mma_ring(const GroupedScaledParams& p) {
  QN_SMEM(smem);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  each_grouped_tile<C.tile_m, C.tile_n, ScaledParams>(
      p.rows, p.gemm.n, smem + scaled_smem(C).bytes, [&](const GroupedTile& tile) { return params_of_group<C>(p, tile); },
      [&](const ScaledParams& own, i64 row, i64 column) { make_scaled_part<C>(own, {row, column}, smem); });
}

}  // namespace quern::gemm
