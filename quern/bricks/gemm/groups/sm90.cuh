// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the grouped kernels share on sm_90a. Blocks stay on their SMs. Every warp of a block walks over the groups by itself: all find the
// same tiles; but where tiles have slots (bricks/gemm/sm90/tile_slots.cuh), those that multiply or copy scales are told. A tile of a may
// reach into the rows behind its group's; they are multiplied and not stored.
#pragma once
#include "quern/bricks/gemm/groups/sm90_spec.h"
#include "quern/bricks/gemm/groups/walk.cuh"
#include "quern/bricks/gemm/sm90/operand.cuh"
#include "quern/kit/kit.cuh"

namespace quern::gemm {

/// The matrix of a, and of out, that a tile is of.
QN_DEVICE i32 matrix_of(const GroupedSm90Params& p, const GroupedTile& tile) {
  return p.rows.kind == GroupedRowsKind::counts ? tile.group : 0;
}

/// A box of rows of a matrix of an operand, to each of `blocks` blocks of a cluster. `rows`: a_rows or b_rows.
template <i32 blocks = 1>
QN_DEVICE void load_rows(u32 to, const TensorMap* map, i32 rows, u32 full, CachePolicy policy, i32 column, i32 row, i32 matrix) {
  if (rows != 0) load_box<blocks>(to, map, full, policy, column, row + matrix * rows);
  else load_box<blocks>(to, map, full, policy, column, row, matrix);
}

/// The same of the tile of b of a group: an N-major one comes in boxes as load_operand() has them, of a map [groups, k, n].
template <Major kMajor, i32 kRows>
QN_DEVICE void load_rows_of_b(u32 to, const TensorMap* map, i32 rows, u32 full, CachePolicy policy, i32 column, i32 row, i32 group) {
  if constexpr (kMajor == Major::k) {
    load_rows(to, map, rows, full, policy, column, row, group);
  } else {
    constexpr i32 kWidth = dense_sm90_box(kRows);
    static_assert(kRows % kWidth == 0);
    QN_UNROLL
    for (i32 i = 0; i < kRows; i += kWidth) ptx::tma_load(to + u32(i) * 128, map, full, policy, row + i, column, group);
  }
}

/// Where the rows of one group go, in the names of a kernel's parameters.
template <class Out>
struct GroupedRowsOut {
  static constexpr const void* bias = nullptr;
  static constexpr DType bias_dtype = DType::f32;
  Out* out;
  i64 out_stride;
  i32 m, n;
  const TensorMap* results;
  i32 matrix;
};
template <class Out>
QN_DEVICE GroupedRowsOut<Out> out_of_group(const GroupedSm90Params& p, const GroupedTile& tile) {
  return {static_cast<Out*>(p.out) + tile.group * p.out_group, p.out_stride, tile.begin + tile.rows, p.n, &p.results, matrix_of(p, tile)};
}
template <class Out>
QN_DEVICE const TensorMap* results_of(const GroupedRowsOut<Out>& p) {
  return p.results;
}
template <class Out>
QN_DEVICE i32 matrix_of(const GroupedRowsOut<Out>& p) {
  return p.matrix;
}

/// Their scales.
struct GroupedScales {
  struct {
    i32 m, n, k;
  } gemm;
  Scales scales_a, scales_b;
};
QN_DEVICE GroupedScales scales_of_group(const GroupedScaledSm90Params& p, const GroupedTile& tile) {
  GroupedScales s{{tile.begin + tile.rows, p.gemm.n, p.gemm.k}, p.scales_a, p.scales_b};
  s.scales_a.data = static_cast<const f32*>(p.scales_a.data) + tile.group * p.scales_a_group;
  s.scales_b.data = static_cast<const f32*>(p.scales_b.data) + tile.group * p.scales_b_group;
  return s;
}

/// Calls f for every tile [kTileM][kTileN] of the block, in order. By whole warps.
template <i32 kTileM, i32 kTileN, class F>
QN_DEVICE void each_tile(const GroupedSm90Params& p, const F& f) {
  const u32 tiles_n = u32(p.n + kTileN - 1) / kTileN;
  GroupedWalk walk = start_walk(p.rows);
  GroupedTile tile;
  QN_NO_UNROLL
  for (u32 index = blockIdx.x; find_tile<kTileM>(p.rows, walk, index, tiles_n, tile); index += gridDim.x) {
    tile.column = i32(tile.at.n) * kTileN;
    f(tile);
  }
}
/// The same of the two blocks of a cluster, which make a pair of tiles at a time.
template <i32 kTileM, i32 kTileN, class F>
QN_DEVICE void each_tile_of_pairs(const GroupedSm90Params& p, const F& f) {
  const u32 tiles_n = u32(p.n + kTileN - 1) / kTileN;
  GroupedWalk walk = start_walk(p.rows);
  const u32 all = all_tiles<kTileM>(p.rows, walk);
  GroupedTile tile;
  QN_NO_UNROLL
  for (u32 index = blockIdx.x / 2; find_tile_of_pair<kTileM>(p.rows, walk, all, index, blockIdx.x % 2, tiles_n, tile);
       index += gridDim.x / 2) {
    tile.column = i32(tile.at.n) * kTileN;
    f(tile);
  }
}
/// Of kColumnWays ways to cover the columns the one with the least time, of several that with most wide tiles. By all lanes of a warp.
template <i32 kTileN, i32 kTailN>
QN_DEVICE ColumnTiles best_column_tiles(u32 along_m, u32 n) {
  static_assert(kColumnWays == 32);
  const u32 rounds = wide_rounds(along_m, gridDim.x, n, kTileN), lane = ptx::lane_id();
  const ColumnTiles own = column_tiles(rounds - min_of(lane, rounds), along_m, gridDim.x, n, kTileN, kTailN);
  u32 best = own.time * 32 + lane;
  QN_UNROLL
  for (int distance = 1; distance < 32; distance *= 2) best = min_of(best, ptx::shfl_xor(best, distance));
  return {ptx::shfl(own.wide, int(best % 32)), ptx::shfl(own.tail, int(best % 32)), best / 32};
}
/// Calls f for every tile of the block, where the last columns of each group may be in narrower tiles of kTailN columns. Of up to
/// kTailGroups groups, at all of which the walk looks together.
template <i32 kTileM, i32 kTileN, i32 kTailN, class F>
QN_DEVICE void each_tile_and_tail(const GroupedSm90Params& p, const F& f) {
  static_assert(kTailGroups <= 32);
  GroupedWalk walk = start_walk(p.rows);
  const u32 all = all_tiles<kTileM>(p.rows, walk);
  const ColumnTiles columns = best_column_tiles<kTileN, kTailN>(all, u32(p.n));
  GroupedTile tile;
  QN_NO_UNROLL
  for (u32 index = blockIdx.x;; index += gridDim.x) {
    if (!tile.tail && index >= all * columns.wide) {
      tile.tail = true;
      index -= all * columns.wide;
    }
    const u32 tiles_n = tile.tail ? columns.tail : columns.wide;
    if (index >= all * tiles_n) return;
    place_tile<kTileM>(walk, index, tiles_n, tile);
    tile.column = tile.tail ? i32(columns.wide * kTileN + tile.at.n * kTailN) : i32(tile.at.n * kTileN);
    f(tile);
  }
}

}  // namespace quern::gemm
