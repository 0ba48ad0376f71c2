// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The order of a matrix's tiles: groups of 8 along m, or of another power of two, then along n, so that blocks that run together share rows
// of a and b in the L2.
#pragma once
#include "quern/kit/kit.cuh"

namespace quern::gemm {

constexpr u32 kGroupLog2 = 3;  // of a group's tiles along m

/// A tile's place among the tiles of a matrix.
struct TilePlace {
  u32 m, n;
};

/// Of the tile `inside` of group `group`. Only the last group has fewer along m than the others, and asks for a division.
QN_DEVICE TilePlace place_in_group(u32 group, u32 inside, u32 tiles_m, u32 group_log2) {
  const u32 first = group << group_log2, rows = tiles_m - first;
  if (rows >> group_log2 != 0) return {first + (inside & ((1u << group_log2) - 1)), inside >> group_log2};
  const u32 column = inside / rows;
  return {first + inside - column * rows, column};
}

/// The place of tile `index`.
template <class Index>
QN_DEVICE TilePlace tile_in_order(Index index, u32 tiles_m, u32 tiles_n) {
  const Index group_tiles = Index(tiles_n) << kGroupLog2;
  const u32 group = u32(index / group_tiles);
  return place_in_group(group, u32(index - group * group_tiles), tiles_m, kGroupLog2);
}

/// A walk over the tiles of a matrix, each `step` behind the one before. A tile's place asks for no division but in a last group of fewer
/// along m: two took 220 of the 340 clocks from the end of a tile to the next one's first wait.
struct TileWalk {
  u32 tiles_m, tiles_n;
  u32 group_log2;
  u32 step, step_groups;  // groups that a step passes over at least
  u32 index, group, inside;
};
QN_DEVICE TileWalk walk_from(u32 index, u32 step, u32 tiles_m, u32 tiles_n, u32 group_log2) {
  const u32 group_tiles = tiles_n << group_log2, group = index / group_tiles;
  return {tiles_m, tiles_n, group_log2, step, step / group_tiles, index, group, index - group * group_tiles};
}
/// Whether there is the tile `further` behind the current one.
QN_DEVICE bool has_tile(const TileWalk& walk, u32 further = 0) { return walk.index + further < walk.tiles_m * walk.tiles_n; }
QN_DEVICE void walk_on(TileWalk& walk) {
  const u32 group_tiles = walk.tiles_n << walk.group_log2;
  walk.index += walk.step;
  walk.group += walk.step_groups;
  walk.inside += walk.step - walk.step_groups * group_tiles;
  if (walk.inside < group_tiles) return;
  ++walk.group;
  walk.inside -= group_tiles;
}
QN_DEVICE TilePlace place_of(const TileWalk& walk) { return place_in_group(walk.group, walk.inside, walk.tiles_m, walk.group_log2); }

}  // namespace quern::gemm
