// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, j] = sum_x scales_a(i, x) scales_b(j, x) a[i, x] b[j, x] + c[i, j] + bias[j], for sm_90a
// The tiles, the ring and the stores of ops/gemm/dense/warp_specialised_sm90/kernel.cuh, with stages of 128 columns of 8 bits. Each of the
// two warpgroups has half of a tile's rows. While it scales the products of a stage, the tensor cores have its next ones (tiles of 128 x
// 128) or the other warpgroup's.
#pragma once
#include "quern/bricks/gemm/sm90/scaled_tile.cuh"
#include "quern/bricks/gemm/sm90/tiles.cuh"

namespace quern::gemm {

template <ScaledSm90 C>
QN_DEVICE void multiply_scaled_tiles(const ScaledSm90Params& p, u32 smem, u32 warpgroup) {
  zero_other_rows<C.block>(p.gemm);
  const u32 first_row = warpgroup * u32(C.block.tiles.tile_m / 2);
  const int steps = scaled_steps(p.gemm.k);
  ScaledRead<C> read{smem + dense_sm90_smem(C.block).barriers};
  [[maybe_unused]] Consumer<scale_stages(C).stages> scales{smem + u32(scale_stages(C).barriers)};
  auto slots = start_reading_slots<C>(smem);
  QN_NO_UNROLL
  for (TileWalk walk = walk_tiles<C.block.tiles>(p.gemm, blockIdx.x, gridDim.x); has_tile(walk); walk_on(walk)) {
    DenseTile tile;
    if constexpr (has_tile_slots(C)) {
      begin_read(slots);
      begin_together<C>(steps);
      const TileWords words = words_in_slot<C>(slots);
      tile = {i32(words.first.x), i32(words.first.y)};
    } else {
      begin_together<C>(steps);
      tile = tile_of<C.block.tiles>(walk);
    }
    if (is_empty<C.block.tiles>(tile, p.gemm.m)) {
      pass_tile<C>(read, slots, steps);
      if constexpr (C.column_scales == 1) {
        begin_read(scales);
        end_read(scales);
      }
      continue;
    }
    const i32 earlier = rows_earlier_of_tile<C.block.tiles>(tile.row, p.gemm.m);
    f32 total[C.block.tiles.tile_m / 128][C.block.tiles.tile_n / 2];
    if constexpr (C.block.tiles.tile_m == 256 && has_tile_slots(C))
      multiply_in_rounds<C>(smem, first_row, earlier, 0, steps, read, slots, total);
    else if constexpr (C.block.tiles.tile_m == 256) multiply_in_rounds<C>(smem, first_row, earlier, steps, read, total);
    else if constexpr (has_rounds(C) && has_tile_slots(C)) multiply_in_rounds<C>(smem, first_row, earlier, 0, steps, read, slots, total[0]);
    else if constexpr (has_rounds(C)) multiply_in_rounds<C>(smem, first_row, earlier, steps, read, total[0]);
    else if constexpr (has_tile_slots(C)) multiply_with_slots<C>(smem, first_row, earlier, 0, steps, read, slots, total[0]);
    else multiply_scaled_tile<C>(smem, first_row, earlier, steps, read, total[0]);
    if constexpr (has_tile_slots(C)) end_read(slots);
    if (!has_tile(walk, walk.step)) ptx::grid_launch_dependents();
    if constexpr (C.column_scales == 1) {
      begin_read(scales);
      QN_UNROLL
      for (u32 half = 0; half < u32(C.block.tiles.tile_m / 128); ++half) scale_tile<C>(scales.stage, first_row + 64 * half, total[half]);
      end_read(scales);
    }
    QN_UNROLL
    for (i32 half = 0; half < C.block.tiles.tile_m / 128; ++half)
      write_rows<C.block>(p.gemm, tile.row + i32(first_row) + 64 * half, tile.column, total[half]);
  }
}

/// By the warp that loads.
template <ScaledSm90 C>
QN_DEVICE void load_scaled_tiles(const ScaledSm90Params& p, u32 smem) {
  constexpr ScaleStages kStages = scale_stages(C);
  load_tiles<C.block, kScaledGroup>(p.gemm, smem, boxed_scale_bytes<kStages>(p.boxes),
                                    [&](const DenseTile& tile, u32 full, u32 stage, int step) {
                                      load_boxed_scales<kStages>(smem, p.boxes, full, stage, tile.row, step);
                                    });
}

/// By the warp that finds tiles.
template <ScaledSm90 C>
QN_DEVICE void fill_slots(const ScaledSm90Params& p, u32 smem) {
  auto fill = start_filling_slots<C>(smem);
  QN_NO_UNROLL
  for (TileWalk walk = walk_tiles<C.block.tiles>(p.gemm, blockIdx.x, gridDim.x); has_tile(walk); walk_on(walk)) {
    const DenseTile tile = tile_of<C.block.tiles>(walk);
    fill_tile_slots<C>(fill, {u32x4{u32(tile.row), u32(tile.column), 0, 0}, 0}, p.scales_b, tile.column, p.gemm.n, scaled_steps(p.gemm.k));
  }
  finish_scales();
}

/// By the scale warps.
template <ScaledSm90 C>
QN_DEVICE void fill_tile_scales(const ScaledSm90Params& p, u32 smem) {
  if constexpr (has_tile_slots(C))
    if (ptx::warp_id() == 1) return fill_slots<C>(p, smem);
  if (boxed_scale_bytes<scale_stages(C)>(p.boxes) != 0) return;
  auto fill = start_scales<scale_stages(C)>(smem);
  QN_NO_UNROLL
  for (TileWalk walk = walk_tiles<C.block.tiles>(p.gemm, blockIdx.x, gridDim.x); has_tile(walk); walk_on(walk)) {
    const DenseTile tile = tile_of<C.block.tiles>(walk);
    fill_scales<scale_stages(C)>(fill, smem, p, tile.row, tile.column, 0, scaled_steps(p.gemm.k));
  }
  finish_scales();
}

template <ScaledSm90Config C>
QN_DEVICE void scaled_warp_specialised_sm90(const ScaledSm90Params& p) {
  static_assert(block_bytes(C.product) <= 227 * 1024);
  QN_SMEM(memory);
  if (threadIdx.x == 32) {
    init_scales<scale_stages(C.product)>(ptx::smem_address(memory), 8);
    init_tile_slots<C.product>(ptx::smem_address(memory), p.boxes);
  }
  constexpr int kRegisters = has_tile_slots(C.product) || C.product.block.tiles.tile_m == 256
                                 ? 56
                                 : 40;  // with 40 the warps that copy scales of 256 rows spilled 64 bytes, the one that finds tiles 32
  run_warpgroups<C.product.block, kRegisters>(
      p.gemm, 8, scale_fills<scale_stages(C.product)>(p.boxes), [&](u32 smem) { load_scaled_tiles<C.product>(p, smem); },
      [&](u32 smem, u32 warpgroup) { multiply_scaled_tiles<C.product>(p, smem, warpgroup); },
      [&](u32 smem) { fill_tile_scales<C.product>(p, smem); });
}

}  // namespace quern::gemm
