// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, j] = sum_x a[i, x] b[g, j, x] for the rows i of each group g, for sm_90a
// Tiles, loads and stores: bricks/gemm/groups/sm90_tiles.cuh. Each of the two warpgroups has half of a tile's rows.
#pragma once
#include "quern/bricks/gemm/groups/sm90_tiles.cuh"
#include "quern/bricks/gemm/sm90/multiply.cuh"

namespace quern::gemm {

template <BlockSm90 C>
QN_DEVICE void multiply_grouped_tiles(const GroupedSm90Params& p, u32 smem, u32 warpgroup) {
  constexpr int kStage = dense_sm90_smem(C).stage;
  const int steps = (p.k + kDenseSm90TileK - 1) / kDenseSm90TileK;
  const u32 first_row = warpgroup * 64;
  Consumer<C.tiles.stages> read{smem + dense_sm90_smem(C).barriers};
  const auto free = [&](u32 stage) { release(read, stage); };
  each_tile<C.tiles.tile_m, C.tiles.tile_n>(p, [&](const GroupedTile& tile) {
    if (is_empty<C.tiles>(tile, first_row)) return pass_stages(read, steps);
    const DenseTile place = place_of<C.tiles>(tile);
    const u32 row_of_a = first_row + u32(rows_earlier_of_tile<C.tiles>(place.row, p.rows.rows));
    f32 sums[1][C.tiles.tile_n / 2];
    zero(sums);
    const u32 last = multiply_stages(read, steps, sums, [&](u32 stage) { multiply_stage<C>(smem + stage * kStage, row_of_a, sums); }, free);
    finish_stages(steps, last, sums, free);
    write_rows<C>(out_of_group<dtype_t<C.ending.out_dtype>>(p, tile), place.row + i32(first_row), place.column, sums[0]);
  });
}

template <TilesSm90Config C>
QN_DEVICE void grouped_warp_specialised_sm90(const GroupedSm90Params& p) {
  static_assert(C.block.tiles.alternate == 0 && C.sum_parts_in_block == 0 && C.block.ending.has_c == 0 && C.block.ending.activation == 0 &&
                C.block.tiles.pair == 0 && C.block.tiles.tail == 0);
  ptx::grid_launch_dependents();
  run_warpgroups<C.block>(
      p, 8, [&](u32 smem) { load_grouped_tiles<C.block, kDenseSm90TileK>(p, smem); },
      [&](u32 smem, u32 warpgroup) { multiply_grouped_tiles<C.block>(p, smem, warpgroup); });
}

}  // namespace quern::gemm
