// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Tiles of the products of groups of K: all groups have as many.
#pragma once
#include "quern/bricks/gemm/tile_order.cuh"
#include "quern/kit/kit.cuh"
#include "quern/ops/gemm/k_grouped/spec.h"

namespace quern::gemm {

/// The columns of K that a group has.
struct KGroupedColumns {
  i32 begin, count;
};
QN_DEVICE KGroupedColumns columns_of_group(const void* spans, i32 group) {
  const i32* const of_group = static_cast<const i32*>(spans) + 2 * i64(group);
  return {ptx::ld_global<i32>(of_group), ptx::ld_global<i32>(of_group + 1)};
}

/// The block takes every gridDim.x-th tile: f(group, place of the tile). Index counts all tiles and those of one more grid.
template <i32 kTileM, i32 kTileN, class Index, class F>
QN_DEVICE void each_tile_of_groups(i64 m, i64 n, i32 groups, const F& f) {
  const u32 tiles_m = u32((m + kTileM - 1) / kTileM), tiles_n = u32((n + kTileN - 1) / kTileN);
  const Index of_group = Index(tiles_m) * tiles_n, count = of_group * Index(groups);
  QN_NO_UNROLL
  for (Index index = blockIdx.x; index < count; index += gridDim.x) {
    const Index group = index / of_group;
    f(i32(group), tile_in_order<Index>(index - group * of_group, tiles_m, tiles_n));
  }
}

}  // namespace quern::gemm
