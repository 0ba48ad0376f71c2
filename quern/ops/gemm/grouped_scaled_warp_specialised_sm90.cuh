// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, j] = sum_x scales_a(i, x) scales_b(g, j, x) a[i, x] b[g, j, x] for the rows i of each group g, for sm_90a
// grouped_warp_specialised_sm90.cuh with the sums of scaled_warp_specialised_sm90.cuh.
#pragma once
#include "quern/ops/gemm/grouped_tiles_sm90.cuh"
#include "quern/ops/gemm/scaled_warp_specialised_sm90.cuh"

namespace quern::gemm {

template <ScaledSm90Config C>
QN_DEVICE void multiply_grouped_scaled_tiles(const GroupedScaledSm90Params& p, u32 smem, u32 warpgroup) {
  constexpr DenseSm90Config kTiles = tiles_of(C);
  const int steps = scaled_steps(p.gemm.k);
  const u32 first_row = warpgroup * u32(C.tile_m / 2);
  Consumer<C.stages> read{smem + dense_sm90_smem(kTiles).barriers};
  each_tile<C.tile_m, C.tile_n>(p.gemm, [&](const GroupedTile& tile) {
    if (skips_rows<kTiles>(tile, first_row, steps, read)) return;
    const DenseTile place = place_of<kTiles>(tile);
    const i32 earlier = rows_earlier_of_tile<kTiles>(place.row, p.gemm.rows.rows);
    f32 total[C.tile_m / 128][C.tile_n / 2];
    if constexpr (C.tile_m == 256) multiply_tall_tile<C>(smem, first_row, earlier, steps, read, total);
    else multiply_scaled_tile<C>(smem, first_row, earlier, steps, read, total[0]);
    QN_UNROLL
    for (i32 half = 0; half < C.tile_m / 128; ++half)
      write_rows<kTiles>(out_of_group<dtype_t<C.out_dtype>>(p.gemm, tile), place.row + i32(first_row) + 64 * half, place.column, total[half]);
  });
}

/// By the scale warps.
template <ScaledSm90Config C>
QN_DEVICE void fill_grouped_scales(const GroupedScaledSm90Params& p, u32 smem) {
  auto fill = start_scales<scale_stages(C)>(smem);
  each_tile<C.tile_m, C.tile_n>(p.gemm, [&](const GroupedTile& tile) {
    const DenseTile place = place_of<tiles_of(C)>(tile);
    fill_scales<scale_stages(C)>(fill, smem, scales_of_group(p, tile), place.row, place.column, 0, scaled_steps(p.gemm.k));
  });
  finish_scales();
}

template <ScaledSm90Config C>
QN_DEVICE void grouped_scaled_warp_specialised_sm90(const GroupedScaledSm90Params& p) {
  static_assert(C.column_scales == 0 && C.has_c == 0);
  ptx::grid_launch_dependents();
  run_warpgroups<tiles_of(C), kScaleFills<scale_stages(C)>, 56>(p.gemm, 8, [&](u32 smem) { load_grouped_tiles<tiles_of(C), kScaledGroup>(p.gemm, smem); },
                                                                [&](u32 smem, u32 warpgroup) { multiply_grouped_scaled_tiles<C>(p, smem, warpgroup); },
                                                                [&](u32 smem) { fill_grouped_scales<C>(p, smem); });
}

}  // namespace quern::gemm
