// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, j] = sum_x scales_a(i, x) scales_b(g, j, x) a[i, x] b[g, j, x] for the rows i of each group g, for sm_90a
// ops/gemm/grouped/warp_specialised_sm90/kernel.cuh with the sums of ops/gemm/scaled/warp_specialised_sm90/kernel.cuh.
#pragma once
#include "quern/bricks/gemm/groups/sm90_tiles.cuh"
#include "quern/bricks/gemm/sm90/scaled_tile.cuh"

namespace quern::gemm {

/// A tile's column is even, so there is room for whether it is of the tail.
QN_DEVICE TileWords words_of(const GroupedTile& tile) {
  return {{u32(tile.group), u32(tile.begin), u32(tile.rows), tile.at.m}, u32(tile.column) + tile.tail};
}
/// Without its place along n, of which the column is what is asked for.
QN_DEVICE GroupedTile tile_of(const TileWords& words) {
  return {i32(words.first.x), i32(words.first.y), i32(words.first.z), {words.first.w, 0}, i32(words.last / 2 * 2), words.last % 2 != 0};
}
/// What stands for the end of the tiles.
QN_DEVICE GroupedTile no_tile() { return {-1, 0, 0, {0, 0}, 0, false}; }

template <ScaledSm90 C>
QN_DEVICE void multiply_grouped_scaled_tiles(const GroupedScaledSm90Params& p, u32 smem, u32 warpgroup) {
  constexpr BlockSm90 kTiles = C.block;
  const int steps = scaled_steps(p.gemm.k);
  const u32 first_row = warpgroup * u32(C.block.tiles.tile_m / 2);
  ScaledRead<C> read{smem + dense_sm90_smem(kTiles).barriers};
  auto slots = start_reading_slots<C>(smem);
  QN_NO_UNROLL
  for (;;) {
    begin_read(slots);
    begin_together<C>(steps);
    GroupedTile tile = tile_of(words_in_slot<C>(slots));
    if (tile.group < 0) break;
    if (is_empty<kTiles.tiles>(tile, first_row)) {
      pass_tile<C>(read, slots, steps);
      continue;
    }
    const i32 earlier = rows_earlier_of_tile<kTiles.tiles>(place_of<kTiles.tiles>(tile).row, p.gemm.rows.rows);
    f32 total[C.block.tiles.tile_m / 128][C.block.tiles.tile_n / 2];
    const u32 later = rows_before_boxed(p.boxes, place_of<kTiles.tiles>(tile).row);
    if constexpr (C.block.tiles.tile_m == 256) {
      multiply_in_rounds<C>(smem, first_row, earlier, later, steps, read, slots, total);
    } else if constexpr (C.block.tiles.tail != 0) {
      // Not any(), behind which ptxas keeps the ring's stage in ordinary registers here (3 to 7 % of the kernel where all tiles are of the
      // tail)
      if (ptx::ballot(tile.tail) != 0)
        multiply_in_rounds<C, C.block.tiles.tail, false>(smem, first_row, earlier, later, steps, read, slots, total[0]);
      else multiply_in_rounds<C>(smem, first_row, earlier, later, steps, read, slots, total[0]);
    } else if constexpr (has_rounds(C)) {
      multiply_in_rounds<C>(smem, first_row, earlier, later, steps, read, slots, total[0]);
    } else {
      multiply_with_slots<C>(smem, first_row, earlier, later, steps, read, slots, total[0]);
    }
    tile = tile_of(words_in_slot<C>(slots));  // again, for want of registers
    end_read(slots);
    const DenseTile place = place_of<kTiles.tiles>(tile);
    GroupedRowsOut out = out_of_group<dtype_t<C.block.ending.out_dtype>>(p.gemm, tile);
    if constexpr (C.block.tiles.tail != 0)
      out.n = min_of(out.n, place.column + C.block.tiles.tile_n - i32(tile.tail) * (C.block.tiles.tile_n - C.block.tiles.tail));
    QN_UNROLL
    for (i32 half = 0; half < C.block.tiles.tile_m / 128; ++half)
      write_rows<kTiles>(out, place.row + i32(first_row) + 64 * half, place.column, total[half]);
  }
}

/// By the warp that loads.
template <ScaledSm90 C>
QN_DEVICE void load_grouped_scaled_tiles(const GroupedScaledSm90Params& p, u32 smem) {
  constexpr ScaleStages kStages = scale_stages(C);
  load_grouped_tiles<C.block, kScaledGroup>(p.gemm, smem, boxed_scale_bytes<kStages>(p.boxes),
                                            [&](const GroupedTile& tile, u32 full, u32 stage, int step) {
                                              load_boxed_scales<kStages>(smem, p.boxes, full, stage, place_of<C.block.tiles>(tile).row,
                                                                         matrix_of(p.gemm, tile) * p.boxes.columns + step);
                                            });
}

/// By the warp that finds tiles.
template <ScaledSm90 C>
QN_DEVICE void fill_grouped_slots(const GroupedScaledSm90Params& p, u32 smem) {
  auto fill = start_filling_slots<C>(smem);
  each_tile<C.block.tiles>(p.gemm, [&](const GroupedTile& tile) {
    fill_tile_slots<C>(fill, words_of(tile), scales_of_group(p, tile).scales_b, tile.column, p.gemm.n, scaled_steps(p.gemm.k));
  });
  fill_tile_slots<C>(fill, words_of(no_tile()), p.scales_b, 0, p.gemm.n, 0);
  finish_scales();
}

/// By the scale warps, which are told the tiles too: a walk of their own took 15 % of the kernel's compile time.
template <ScaledSm90 C>
QN_DEVICE void fill_grouped_scales(const GroupedScaledSm90Params& p, u32 smem) {
  if (ptx::warp_id() == 1) return fill_grouped_slots<C>(p, smem);
  if (boxed_scale_bytes<scale_stages(C)>(p.boxes) != 0) return;
  const int steps = scaled_steps(p.gemm.k);
  auto fill = start_scales<scale_stages(C)>(smem);
  auto slots = start_reading_slots<C>(smem);
  QN_NO_UNROLL
  for (;;) {
    begin_read(slots);
    const GroupedTile tile = tile_of(words_in_slot<C>(slots));
    if (tile.group < 0) break;
    const DenseTile place = place_of<C.block.tiles>(tile);
    int first = 0;
    do {
      if (first > 0) next_slot(slots);
      fill_scales<scale_stages(C)>(fill, smem, scales_of_group(p, tile), place.row, place.column, first, min_of(steps - first, kSlotSteps));
      first += kSlotSteps;
    } while (first < steps);
    end_read(slots);
  }
  finish_scales();
}

template <ScaledSm90Config C>
QN_DEVICE void grouped_scaled_warp_specialised_sm90(const GroupedScaledSm90Params& p) {
  static_assert(C.product.column_scales == 0 && C.product.block.ending.has_c == 0 && block_bytes(C.product) <= 227 * 1024);
  // Of a tail's tiles as of wide ones: whole boxes of results, whole scales of b, and the rows that wgmma reads behind a's
  // (rows_earlier_of_tile())
  static_assert(C.product.block.tiles.tail == 0 || (C.product.block.tiles.tile_m == 128 && C.product.block.tiles.pair == 0 &&
                                                    has_rounds(C.product) && C.product.block.tiles.tail < C.product.block.tiles.tile_n &&
                                                    C.product.block.tiles.tail % dense_sm90_boxes(C.product.block).columns == 0 &&
                                                    C.product.block.tiles.tail % scaled_sm90_columns(C.product) == 0 &&
                                                    C.product.block.tiles.tail >= C.product.block.tiles.tile_m - 8));
  ptx::grid_launch_dependents();
  QN_SMEM(memory);
  if (threadIdx.x == 32) {
    init_tile_slots<C.product>(ptx::smem_address(memory), p.boxes, p.boxes.used != 0 ? 0 : scale_stages(C.product).warps);
    if constexpr (C.product.block.tiles.tail != 0) ptx::prefetch_tensormap(&p.gemm.b_tail);
  }
  run_warpgroups<C.product.block, 56>(
      p.gemm, 8, scale_fills<scale_stages(C.product)>(p.boxes), [&](u32 smem) { load_grouped_scaled_tiles<C.product>(p, smem); },
      [&](u32 smem, u32 warpgroup) { multiply_grouped_scaled_tiles<C.product>(p, smem, warpgroup); },
      [&](u32 smem) { fill_grouped_scales<C.product>(p, smem); });
}

}  // namespace quern::gemm
