// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The grouped kernels for many rows on sm_90a: bricks/gemm/sm90/tiles.cuh with the tiles of groups.
#pragma once
#include "quern/bricks/gemm/groups/sm90.cuh"
#include "quern/bricks/gemm/sm90/tiles.cuh"

namespace quern::gemm {

/// A tile's place in its group's matrix.
template <TilesSm90 T>
QN_DEVICE DenseTile place_of(const GroupedTile& tile) {
  return {tile.begin + i32(tile.at.m * T.tile_m), tile.column};
}

/// Calls f for every tile of the block.
template <TilesSm90 T, class F>
QN_DEVICE void each_tile(const GroupedSm90Params& p, const F& f) {
  if constexpr (T.pair != 0) each_tile_of_pairs<T.tile_m, T.tile_n>(p, f);
  else if constexpr (T.tail != 0) each_tile_and_tail<T.tile_m, T.tile_n, T.tail>(p, f);
  else each_tile<T.tile_m, T.tile_n>(p, f);
}
/// Of a pair of tiles: whether this one has rows, and whether both are of one group, whose b they share.
template <TilesSm90 T>
QN_DEVICE bool exists(const GroupedTile& tile) {
  return T.pair == 0 || i32(tile.at.m * T.tile_m) < tile.rows;
}
template <TilesSm90 T>
QN_DEVICE bool shares_b(const GroupedTile& tile) {
  return T.pair != 0 && (blockIdx.x % 2 == 0 ? i32((tile.at.m + 1) * T.tile_m) < tile.rows : tile.at.m > 0 && exists<T>(tile));
}

/// By a warp: stages of kColumns columns of K. beside(tile, full, stage, step) as load_tile() has it.
template <BlockSm90 C, i32 kColumns, class Beside>
QN_DEVICE void load_grouped_tiles(const GroupedSm90Params& p, u32 smem, u32 bytes_beside, const Beside& beside) {
  constexpr auto L = dense_sm90_smem(C);
  const int steps = (p.k + kColumns - 1) / kColumns;
  Producer<C.tiles.stages> fill{smem + L.barriers};
  each_tile<C.tiles>(p, [&](const GroupedTile& tile) {
    const DenseTile place = place_of<C.tiles>(tile);
    const i32 row = place.row - rows_earlier_of_tile<C.tiles>(place.row, p.rows.rows);
    const bool here = exists<C.tiles>(tile), shared = shares_b<C.tiles>(tile);
    const bool tail = C.tiles.tail != 0 && tile.tail;
    // How the L2 keeps b. A group with one tile along m reads its b once, and leaves the L2 to others (README). With 16 bits, whose stages
    // have another number of columns, this was not measured
    const CachePolicy policy =
        kColumns == kScaledGroup && tile.rows <= C.tiles.tile_m ? CachePolicy::evict_first : CachePolicy::evict_normal;
    const TensorMap* const b = tail ? &p.b_tail : &p.b;
    const u32 bytes = u32(L.stage) - (tail ? u32(C.tiles.tile_n - C.tiles.tail) * 128 : 0) + bytes_beside;
    if (ptx::elect_sync()) {
      QN_NO_UNROLL
      for (int step = 0; step < steps; ++step) {
        if (!here) {
          begin_fill(fill, 0);
          end_fill(fill);
          continue;
        }
        const u32 full = begin_fill(fill, bytes), stage = smem + fill.stage * L.stage;
        load_rows(stage + L.a, &p.a, p.a_rows, full, CachePolicy::evict_normal, step * kColumns, row, matrix_of(p, tile));
        load_tile_b<C.tiles>(
            stage + L.b, place.column, shared,
            [&](u32 to, i32 first) {
              load_rows_of_b<C.tiles.b_major, C.tiles.tile_n>(to, b, p.b_rows, full, policy, step * kColumns, first, tile.group);
            },
            [&](u32 to, i32 first) { load_rows<2>(to, &p.b, p.b_rows, full, policy, step * kColumns, first, tile.group); });
        beside(tile, full, fill.stage, step);
        end_fill(fill);
      }
    }
    ptx::sync_warp();
  });
  if constexpr (C.tiles.pair != 0)
    if (ptx::elect_sync()) drain(fill);  // the other block's warps arrive here
}
template <BlockSm90 C, i32 kColumns>
QN_DEVICE void load_grouped_tiles(const GroupedSm90Params& p, u32 smem) {
  load_grouped_tiles<C, kColumns>(p, smem, 0, [](const GroupedTile&, u32, u32, int) {});
}

/// Whether a warpgroup's rows of a tile, from `first_row` on, are all behind the group's. A vote, as is_empty() has it.
template <TilesSm90 T>
QN_DEVICE bool is_empty(const GroupedTile& tile, u32 first_row) {
  return !ptx::any(i32(tile.at.m * T.tile_m + first_row) < tile.rows);
}

}  // namespace quern::gemm
