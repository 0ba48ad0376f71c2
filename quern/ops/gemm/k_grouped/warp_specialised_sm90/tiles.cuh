// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the kernels for groups of K share on sm_90a: bricks/gemm/sm90/tiles.cuh with tiles of groups, whose operands come through maps of
// their own. A map ends where its group ends, so the last stage of a group has zeros behind its columns.
#pragma once
#include "quern/bricks/gemm/sm90/tiles.cuh"
#include "quern/ops/gemm/k_grouped/tiles.cuh"

namespace quern::gemm {

struct KGroupedTile {
  i32 group;
  KGroupedColumns columns;
  DenseTile place;  ///< in the group's matrix
};

/// Calls f for every tile of the block, in order.
template <TilesSm90 T, class F>
QN_DEVICE void each_k_grouped_tile(const KGroupedSm90Params& p, const F& f) {
  each_tile_of_groups<T.tile_m, T.tile_n, u32>(p.m, p.n, p.groups, [&](i32 group, const TilePlace& at) {
    f(KGroupedTile{group, columns_of_group(p.spans, group), {i32(at.m * T.tile_m), i32(at.n * T.tile_n)}});
  });
}

/// They are made by the kernel before.
QN_DEVICE void prefetch_maps(const KGroupedSm90Params&) {}

/// By a warp, of which one thread loads: stages of kColumns columns of K.
template <BlockSm90 C, i32 kColumns>
QN_DEVICE void load_k_grouped_tiles(const KGroupedSm90Params& p, u32 smem) {
  if (!ptx::elect_sync()) return;
  Producer<C.tiles.stages> fill{smem + dense_sm90_smem(C).barriers};
  i32 acquired = -1;
  each_k_grouped_tile<C.tiles>(p, [&](const KGroupedTile& tile) {
    if (tile.columns.count == 0) return;  // there are no maps
    const TensorMap* const maps = static_cast<const TensorMap*>(p.maps) + 2 * i64(tile.group);
    if (tile.group != acquired) {
      ptx::fence_proxy_tensormap_acquire(maps);
      ptx::fence_proxy_tensormap_acquire(maps + 1);
      acquired = tile.group;
    }
    load_tile<C, kColumns>(fill, smem, maps, maps + 1, tile.place, C.tiles.tile_m, C.tiles.tile_n,
                           (tile.columns.count + kColumns - 1) / kColumns, 0, [](u32, u32, int) {});
  });
}

/// Where the results of a group go, in the names of a kernel's parameters.
template <class Out>
struct KGroupedOut {
  static constexpr const void* bias = nullptr;
  static constexpr DType bias_dtype = DType::f32;
  Out* out;
  i64 out_stride;
  i32 m, n;
  DenseAddend c;
  const TensorMap* results;
  i32 matrix;
};
template <class Out>
QN_DEVICE const TensorMap* results_of(const KGroupedOut<Out>& p) {
  return p.results;
}
template <class Out>
QN_DEVICE i32 matrix_of(const KGroupedOut<Out>& p) {
  return p.matrix;
}
template <class Out>
QN_DEVICE KGroupedOut<Out> out_of_group(const KGroupedSm90Params& p, i32 group) {
  KGroupedOut<Out> own{
      reinterpret_cast<Out*>(static_cast<u8*>(p.out) + group * p.out_group), p.out_stride, p.m, p.n, p.c, &p.results, group};
  own.c.data = static_cast<const u8*>(p.c.data) + group * p.c_group;
  return own;
}

}  // namespace quern::gemm
