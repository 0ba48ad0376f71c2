// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The grouped kernels for many rows on sm_90a: tiles_sm90.cuh with the tiles of groups.
#pragma once
#include "quern/ops/gemm/grouped_sm90.cuh"
#include "quern/ops/gemm/tiles_sm90.cuh"

namespace quern::gemm {

/// A tile's place in its group's matrix.
template <DenseSm90Config C>
QN_DEVICE DenseTile place_of(const GroupedTile& tile) {
  return {tile.begin + i32(tile.at.m * C.tile_m), i32(tile.at.n * C.tile_n)};
}

/// By a warp: stages of kColumns columns of K.
template <DenseSm90Config C, i32 kColumns>
QN_DEVICE void load_grouped_tiles(const GroupedSm90Params& p, u32 smem) {
  constexpr auto L = dense_sm90_smem(C);
  const int steps = (p.k + kColumns - 1) / kColumns;
  Producer<C.stages> fill{smem + L.barriers};
  each_tile<C.tile_m, C.tile_n>(p, [&](const GroupedTile& tile) {
    const DenseTile place = place_of<C>(tile);
    const i32 row = place.row - rows_earlier_of_tile<C>(place.row, p.rows.rows);
    if (ptx::elect_sync()) {
      QN_NO_UNROLL
      for (int step = 0; step < steps; ++step) {
        const u32 full = begin_fill(fill, L.stage), stage = smem + fill.stage * L.stage;
        ptx::tma_load(stage + L.a, &p.a, full, CachePolicy::evict_normal, step * kColumns, row, matrix_of(p, tile));
        ptx::tma_load(stage + L.b, &p.b, full, CachePolicy::evict_normal, step * kColumns, place.column, tile.group);
        end_fill(fill);
      }
    }
    ptx::sync_warp();
  });
}

/// Whether a warpgroup's rows of a tile, from `first_row` on, are all behind the group's: their stages are read by nobody else, and released.
template <DenseSm90Config C>
QN_DEVICE bool skips_rows(const GroupedTile& tile, u32 first_row, int steps, Consumer<C.stages>& read) {
  if (i32(tile.at.m * C.tile_m + first_row) < tile.rows) return false;
  QN_NO_UNROLL
  for (int step = 0; step < steps; ++step) {
    begin_read(read);
    end_read(read);
  }
  return true;
}

}  // namespace quern::gemm
