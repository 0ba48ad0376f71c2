// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[g, i, j] = c[g, i, j] + sum of a(i, x) b(j, x) over the columns x of K of group g
// Blocks stay on their SMs; each takes every gridDim.x-th tile and makes it as dense_mma_ring does, as a part of the product of
// that group's columns.
#pragma once
#include "quern/bricks/gemm/groups/params.cuh"
#include "quern/bricks/gemm/mma/ring.cuh"
#include "quern/ops/gemm/k_grouped/tiles.cuh"

namespace quern::gemm {

/// The product of one group's columns.
template <DenseConfig C>
QN_DEVICE DenseParams params_of_group(const KGroupedDenseParams& p, i32 group) {
  using T = dtype_t<C.dtype>;
  const KGroupedColumns columns = columns_of_group(p.spans, group);
  DenseParams own = p.gemm;
  own.a = static_cast<const T*>(p.gemm.a) + columns.begin * p.a_column;
  own.b = static_cast<const T*>(p.gemm.b) + columns.begin * p.b_column;
  own.out = static_cast<u8*>(p.gemm.out) + group * p.out_group;
  if constexpr (C.has_c != 0) own.c.data = static_cast<const u8*>(p.gemm.c.data) + group * p.c_group;
  own.k = own.split_k = columns.count;
  return own;
}

template <DenseConfig C>
QN_DEVICE void k_grouped_mma_ring(const KGroupedDenseParams& p) {
  static_assert(C.sum_parts_in_block == 0 && C.activation == 0);
  QN_SMEM(smem);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  each_tile_of_groups<C.tile_m, C.tile_n, u64>(p.gemm.m, p.gemm.n, p.groups, [&](i32 group, const TilePlace& at) {
    make_with<DenseParams>(
        smem + dense_smem(C).bytes, [&] { return params_of_group<C>(p, group); },
        [&](const DenseParams& own) { make_part<C>(own, {i64(at.m) * C.tile_m, i64(at.n) * C.tile_n, 0, own.k}, smem); });
  });
}

}  // namespace quern::gemm
