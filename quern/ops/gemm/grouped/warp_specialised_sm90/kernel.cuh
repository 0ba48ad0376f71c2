// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, j] = sum_x a[i, x] b[g, j, x] for the rows i of each group g, for sm_90a
// Tiles, loads and stores: bricks/gemm/groups/sm90_tiles.cuh. Each of the two warpgroups has half of a tile's rows.
#pragma once
#include "quern/bricks/gemm/groups/sm90_tiles.cuh"
#include "quern/bricks/gemm/sm90/multiply.cuh"

namespace quern::gemm {

template <DenseSm90Config C>
QN_DEVICE void multiply_grouped_tiles(const GroupedSm90Params& p, u32 smem, u32 warpgroup) {
  constexpr int kStage = dense_sm90_smem(C).stage;
  const int steps = (p.k + kDenseSm90TileK - 1) / kDenseSm90TileK;
  const u32 first_row = warpgroup * 64;
  Consumer<C.stages> read{smem + dense_sm90_smem(C).barriers};
  const auto free = [&](u32 stage) { release(read, stage); };
  each_tile<C.tile_m, C.tile_n>(p, [&](const GroupedTile& tile) {
    if (is_empty<C>(tile, first_row)) return pass_stages(read, steps);
    const DenseTile place = place_of<C>(tile);
    const u32 row_of_a = first_row + u32(rows_earlier_of_tile<C>(place.row, p.rows.rows));
    f32 sums[1][C.tile_n / 2];
    zero(sums);
    const u32 last = multiply_stages(read, steps, sums, [&](u32 stage) { multiply_stage<C>(smem + stage * kStage, row_of_a, sums); }, free);
    finish_stages(steps, last, sums, free);
    write_rows<C>(out_of_group<dtype_t<C.out_dtype>>(p, tile), place.row + i32(first_row), place.column, sums[0]);
  });
}

template <DenseSm90Config C>
QN_DEVICE void grouped_warp_specialised_sm90(const GroupedSm90Params& p) {
  static_assert(C.alternate == 0 && C.fold == 0 && C.has_c == 0 && C.activation == 0 && C.pair == 0 && C.tail == 0);
  ptx::grid_launch_dependents();
  run_warpgroups<C>(p, 8, [&](u32 smem) { load_grouped_tiles<C, kDenseSm90TileK>(p, smem); },
                    [&](u32 smem, u32 warpgroup) { multiply_grouped_tiles<C>(p, smem, warpgroup); });
}

}  // namespace quern::gemm
