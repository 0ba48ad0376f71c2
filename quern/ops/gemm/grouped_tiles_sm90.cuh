// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the grouped kernels share on sm_90a: tiles_sm90.cuh, with tiles that grouped_walk.cuh finds. Every warp walks by itself: all find
// the same tiles. A tile of a may reach into the rows behind its group's; they are multiplied and not stored.
#pragma once
#include "quern/ops/gemm/grouped_sm90_spec.h"
#include "quern/ops/gemm/grouped_walk.cuh"
#include "quern/ops/gemm/tiles_sm90.cuh"

namespace quern::gemm {

/// What write_rows reads, for the rows of one group.
template <class Out>
struct GroupedRowsOut {
  static constexpr const void* bias = nullptr;
  static constexpr DType bias_dtype = DType::f32;
  Out* out;
  i64 out_stride;
  i32 m, n;
};
template <class Out>
QN_DEVICE GroupedRowsOut<Out> out_of_group(const GroupedSm90Params& p, const GroupedTile& tile) {
  return {static_cast<Out*>(p.out) + tile.group * p.out_group, p.out_stride, tile.begin + tile.rows, p.n};
}

/// A tile's place in its group's matrix.
template <DenseSm90Config C>
QN_DEVICE DenseTile place_of(const GroupedTile& tile) {
  return {tile.begin + i32(tile.at.m * C.tile_m), i32(tile.at.n * C.tile_n)};
}

/// Calls f for every tile of the block, in order. By whole warps.
template <DenseSm90Config C, class F>
QN_DEVICE void each_tile(const GroupedSm90Params& p, const F& f) {
  const u32 tiles_n = u32(p.n + C.tile_n - 1) / C.tile_n;
  GroupedWalk walk = start_walk<C.tile_m>(p.rows);
  GroupedTile tile;
  QN_NO_UNROLL
  for (u32 index = blockIdx.x; find_tile<C.tile_m>(p.rows, walk, index, tiles_n, tile); index += gridDim.x) f(tile);
}

/// By a warp: stages of kColumns columns of K.
template <DenseSm90Config C, i32 kColumns>
QN_DEVICE void load_grouped_tiles(const GroupedSm90Params& p, u32 smem) {
  constexpr auto L = dense_sm90_smem(C);
  const int steps = (p.k + kColumns - 1) / kColumns;
  Producer<C.stages> fill{smem + L.barriers};
  each_tile<C>(p, [&](const GroupedTile& tile) {
    const DenseTile place = place_of<C>(tile);
    const i32 matrix = p.rows.kind == GroupedRowsKind::counts ? tile.group : 0;
    if (ptx::lane_id() == 0) {
      QN_NO_UNROLL
      for (int step = 0; step < steps; ++step) {
        const u32 full = begin_fill(fill, L.stage), stage = smem + fill.stage * L.stage;
        ptx::tma_load(stage + L.a, &p.a, full, CachePolicy::evict_normal, step * kColumns, place.row, matrix);
        ptx::tma_load(stage + L.b, &p.b, full, CachePolicy::evict_normal, step * kColumns, place.column, tile.group);
        end_fill(fill);
      }
    }
    ptx::sync_warp();
  });
}

/// Whether the 64 rows of a tile from `first_row` on are all behind the group's: their stages are read by nobody else, and released.
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
