// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[g, i, j] = c[g, i, j] + sum of scales_a(i, x) scales_b(j, x) a(i, x) b(j, x) over the columns x of K of group g
// ops/gemm/k_grouped/portable/mma_ring.cuh with the tiles of scaled_mma_ring.
#pragma once
#include "quern/bricks/gemm/groups/params.cuh"
#include "quern/bricks/gemm/mma/scaled_ring.cuh"
#include "quern/ops/gemm/k_grouped/tiles.cuh"

namespace quern::gemm {

/// The product of one group's columns.
template <ScaledConfig C>
QN_DEVICE ScaledParams params_of_group(const KGroupedScaledParams& p, i32 group) {
  using S = ScaledShape<C>;
  const KGroupedColumns columns = columns_of_group(p.spans, group);
  const i64 scale = columns.begin / kScaledGroup;
  ScaledParams own = p.gemm;
  own.a = static_cast<const typename S::TA*>(p.gemm.a) + columns.begin * p.a_column;
  own.b = static_cast<const typename S::TB*>(p.gemm.b) + columns.begin * p.b_column;
  if (p.packed) own.a_stride = own.b_stride = columns.count;
  own.out = static_cast<u8*>(p.gemm.out) + group * p.out_group;
  if (own.c.data != nullptr) own.c.data = static_cast<const u8*>(p.gemm.c.data) + group * p.c_group;
  own.scales_a.data = static_cast<const f32*>(p.gemm.scales_a.data) + scale * p.gemm.scales_a.column_stride;
  own.scales_b.data = static_cast<const f32*>(p.gemm.scales_b.data) + scale * p.gemm.scales_b.column_stride;
  own.k = columns.count;
  return own;
}

template <ScaledConfig C>
QN_DEVICE void k_grouped_scaled_mma_ring(const KGroupedScaledParams& p) {
  QN_SMEM(smem);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  each_tile_of_groups<C.tile_m, C.tile_n, u64>(p.gemm.m, p.gemm.n, p.groups, [&](i32 group, const TilePlace& at) {
    make_with<ScaledParams>(
        smem + scaled_smem(C).bytes, [&] { return params_of_group<C>(p, group); },
        [&](const ScaledParams& own) { make_scaled_part<C>(own, {i64(at.m) * C.tile_m, i64(at.n) * C.tile_n}, smem); });
  });
}

}  // namespace quern::gemm
