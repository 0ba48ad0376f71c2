// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[g, i, j] = c[g, i, j] + sum of scales_a(i, x) scales_b(j, x) a(i, x) b(j, x) over the columns x of K of group g, for sm_90a
// ops/gemm/k_grouped/warp_specialised_sm90/kernel.cuh with the sums of ops/gemm/scaled/warp_specialised_sm90/kernel.cuh.
#pragma once
#include "quern/bricks/gemm/sm90/scaled_tile.cuh"
#include "quern/ops/gemm/k_grouped/warp_specialised_sm90/tiles.cuh"

namespace quern::gemm {

/// A group's scales, in the names of a kernel's parameters.
struct KGroupedScales {
  struct {
    i32 m, n, k;
  } gemm;
  Scales scales_a, scales_b;
};
QN_DEVICE KGroupedScales scales_of_group(const KGroupedScaledSm90Params& p, const KGroupedColumns& columns) {
  const i64 first = columns.begin / kScaledGroup;
  KGroupedScales s{{p.gemm.m, p.gemm.n, columns.count}, p.scales_a, p.scales_b};
  s.scales_a.data = static_cast<const f32*>(p.scales_a.data) + first * p.scales_a.column_stride;
  s.scales_b.data = static_cast<const f32*>(p.scales_b.data) + first * p.scales_b.column_stride;
  return s;
}

/// Stages of a group.
QN_DEVICE int steps_of(const KGroupedColumns& columns) { return scaled_steps(columns.count); }

template <ScaledSm90 C>
QN_DEVICE void multiply_k_grouped_scaled_tiles(const KGroupedScaledSm90Params& p, u32 smem, u32 warpgroup) {
  constexpr BlockSm90 kTiles = C.block;
  const u32 first_row = warpgroup * 64;
  Consumer<C.block.tiles.stages> read{smem + dense_sm90_smem(kTiles).barriers};
  each_k_grouped_tile<kTiles.tiles>(p.gemm, [&](const KGroupedTile& tile) {
    f32 total[C.block.tiles.tile_n / 2];
    multiply_scaled_tile<C>(smem, first_row, 0, steps_of(tile.columns), read, total);
    write_rows<kTiles>(out_of_group<dtype_t<C.block.ending.out_dtype>>(p.gemm, tile.group), tile.place.row + i32(first_row),
                       tile.place.column, total);
  });
}

/// By the scale warps.
template <ScaledSm90 C>
QN_DEVICE void fill_k_grouped_scales(const KGroupedScaledSm90Params& p, u32 smem) {
  auto fill = start_scales<scale_stages(C)>(smem);
  each_k_grouped_tile<C.block.tiles>(p.gemm, [&](const KGroupedTile& tile) {
    fill_scales<scale_stages(C)>(fill, smem, scales_of_group(p, tile.columns), tile.place.row, tile.place.column, 0,
                                 steps_of(tile.columns));
  });
  finish_scales();
}

template <ScaledSm90Config C>
QN_DEVICE void k_grouped_scaled_warp_specialised_sm90(const KGroupedScaledSm90Params& p) {
  static_assert(C.product.column_scales == 2 && C.product.block.tiles.pair == 0);
  ptx::grid_launch_dependents();
  run_warpgroups<C.product.block, 40>(
      p.gemm, 8, kScaleFills<scale_stages(C.product)>, [&](u32 smem) { load_k_grouped_tiles<C.product.block, kScaledGroup>(p.gemm, smem); },
      [&](u32 smem, u32 warpgroup) { multiply_k_grouped_scaled_tiles<C.product>(p, smem, warpgroup); },
      [&](u32 smem) { fill_k_grouped_scales<C.product>(p, smem); });
}

}  // namespace quern::gemm
