// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, j] = sum_x scales_a(i, x) scales_b(j, x) a[i, x] b[j, x] + c[i, j] + bias[j], for sm_90a
// The tiles, the ring and the stores of dense_warp_specialised_sm90.cuh, with stages of 128 columns of 8 bits. Each of the two warpgroups has half of
// a tile's rows. While it scales the products of a stage, the tensor cores have its next ones (tiles of 128 x 128) or the other warpgroup's.
#pragma once
#include "quern/ops/gemm/scaled_tile_sm90.cuh"
#include "quern/ops/gemm/tiles_sm90.cuh"

namespace quern::gemm {

template <ScaledSm90Config C>
QN_DEVICE void multiply_scaled_tiles(const ScaledSm90Params& p, u32 smem, u32 warpgroup) {
  zero_other_rows<tiles_of(C)>(p.gemm);
  const u32 first_row = warpgroup * u32(C.tile_m / 2);
  const int steps = scaled_steps(p.gemm.k);
  Consumer<C.stages> read{smem + dense_sm90_smem(tiles_of(C)).barriers};
  [[maybe_unused]] Consumer<scale_stages(C).stages> scales{smem + u32(scale_stages(C).barriers)};
  QN_NO_UNROLL
  for (TileWalk walk = walk_tiles<tiles_of(C)>(p.gemm, blockIdx.x, gridDim.x); has_tile(walk); walk_on(walk)) {
    const DenseTile tile = tile_of<tiles_of(C)>(walk);
    const i32 earlier = rows_earlier_of_tile<tiles_of(C)>(tile.row, p.gemm.m);
    f32 total[C.tile_m / 128][C.tile_n / 2];
    if constexpr (C.tile_m == 256) multiply_tall_tile<C>(smem, first_row, earlier, steps, read, total);
    else multiply_scaled_tile<C>(smem, first_row, earlier, steps, read, total[0]);
    if (!has_tile(walk, walk.step)) ptx::grid_launch_dependents();
    if constexpr (C.column_scales == 1) scale_tile<C>(scales, first_row, total[0]);
    QN_UNROLL
    for (i32 half = 0; half < C.tile_m / 128; ++half) write_rows<tiles_of(C)>(p.gemm, tile.row + i32(first_row) + 64 * half, tile.column, total[half]);
  }
}

/// By the scale warps.
template <ScaledSm90Config C>
QN_DEVICE void fill_tile_scales(const ScaledSm90Params& p, u32 smem) {
  auto fill = start_scales<scale_stages(C)>(smem);
  QN_NO_UNROLL
  for (TileWalk walk = walk_tiles<tiles_of(C)>(p.gemm, blockIdx.x, gridDim.x); has_tile(walk); walk_on(walk)) {
    const DenseTile tile = tile_of<tiles_of(C)>(walk);
    fill_scales<scale_stages(C)>(fill, smem, p, tile.row, tile.column, 0, scaled_steps(p.gemm.k));
  }
  finish_scales();
}

template <ScaledSm90Config C>
QN_DEVICE void scaled_warp_specialised_sm90(const ScaledSm90Params& p) {
  static_assert(scale_stages(C).bytes <= 227 * 1024);
  QN_SMEM(memory);
  if (threadIdx.x == 32) init_scales<scale_stages(C)>(ptx::smem_address(memory), 8);
  constexpr int kRegisters = C.tile_m == 256 ? 56 : 40;  // with 40 the warps that copy scales of 256 rows spilled 64 bytes
  run_warpgroups<tiles_of(C), kScaleFills<scale_stages(C)>, kRegisters>(p.gemm, 8, [&](u32 smem) { load_tiles<tiles_of(C), kScaledGroup>(p.gemm, smem); },
                                                                [&](u32 smem, u32 warpgroup) { multiply_scaled_tiles<C>(p, smem, warpgroup); },
                                                                [&](u32 smem) { fill_tile_scales<C>(p, smem); });
}

}  // namespace quern::gemm
