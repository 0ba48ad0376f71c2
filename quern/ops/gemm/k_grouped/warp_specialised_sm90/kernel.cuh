// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[g, i, j] = c[g, i, j] + sum of a(i, x) b(j, x) over the columns x of K of group g, for sm_90a
// Tiles and loads: ops/gemm/k_grouped/warp_specialised_sm90/tiles.cuh. Each of the two warpgroups has half of a tile's rows. An element is
// summed as by dense_warp_specialised_sm90.
#pragma once
#include "quern/bricks/gemm/sm90/multiply.cuh"
#include "quern/ops/gemm/k_grouped/warp_specialised_sm90/tiles.cuh"

namespace quern::gemm {

template <BlockSm90 C>
QN_DEVICE void multiply_k_grouped_tiles(const KGroupedSm90Params& p, u32 smem, u32 warpgroup) {
  constexpr int kStage = dense_sm90_smem(C).stage;
  const u32 first_row = warpgroup * 64;
  Consumer<C.tiles.stages> read{smem + dense_sm90_smem(C).barriers};
  const auto free = [&](u32 stage) { release(read, stage); };
  each_k_grouped_tile<C.tiles>(p, [&](const KGroupedTile& tile) {
    const int steps = (tile.columns.count + kDenseSm90TileK - 1) / kDenseSm90TileK;
    f32 sums[1][C.tiles.tile_n / 2];
    zero(sums);
    const u32 last =
        multiply_stages(read, steps, sums, [&](u32 stage) { multiply_stage<C>(smem + stage * kStage, first_row, sums); }, free);
    finish_stages(steps, last, sums, free);
    write_rows<C>(out_of_group<dtype_t<C.ending.out_dtype>>(p, tile.group), tile.place.row + i32(first_row), tile.place.column, sums[0]);
  });
}

template <TilesSm90Config C>
QN_DEVICE void k_grouped_warp_specialised_sm90(const KGroupedSm90Params& p) {
  static_assert(C.block.tiles.alternate == 0 && C.sum_parts_in_block == 0 && C.block.ending.activation == 0);
  ptx::grid_launch_dependents();
  run_warpgroups<C.block>(
      p, 8, [&](u32 smem) { load_k_grouped_tiles<C.block, kDenseSm90TileK>(p, smem); },
      [&](u32 smem, u32 warpgroup) { multiply_k_grouped_tiles<C.block>(p, smem, warpgroup); });
}

}  // namespace quern::gemm
