// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The order of a matrix's tiles: groups of 8 along m, then along n, so that blocks that run together share rows of a and b in the L2.
#pragma once
#include "quern/kit/kit.cuh"

namespace quern::gemm {

constexpr u32 kTilesOfGroup = 8;  // along m

/// A tile's place among the tiles of a matrix.
struct TilePlace {
  u32 m, n;
};

/// Of the tile `inside` of group `group`. Only the last group has fewer than 8 along m, and asks for a division.
QN_DEVICE TilePlace place_in_group(u32 group, u32 inside, u32 tiles_m) {
  const u32 first = group * kTilesOfGroup, rows = tiles_m - first;
  if (rows >= kTilesOfGroup) return {first + inside % kTilesOfGroup, inside / kTilesOfGroup};
  const u32 column = inside / rows;
  return {first + inside - column * rows, column};
}

/// The place of tile `index`.
template <class Index>
QN_DEVICE TilePlace tile_in_order(Index index, u32 tiles_m, u32 tiles_n) {
  const Index group_tiles = Index(kTilesOfGroup) * tiles_n;
  const u32 group = u32(index / group_tiles);
  return place_in_group(group, u32(index - group * group_tiles), tiles_m);
}

/// A walk over the tiles of a matrix, each `step` behind the one before. A tile's place asks for no division but in a last group of fewer than 8 along m: two took
/// 220 of the 340 clocks from the end of a tile to the next one's first wait.
struct TileWalk {
  u32 tiles_m, tiles_n;
  u32 step, step_groups;  // groups that a step passes over at least
  u32 index, group, inside;
};
QN_DEVICE TileWalk walk_from(u32 index, u32 step, u32 tiles_m, u32 tiles_n) {
  const u32 group_tiles = kTilesOfGroup * tiles_n, group = index / group_tiles;
  return {tiles_m, tiles_n, step, step / group_tiles, index, group, index - group * group_tiles};
}
/// Whether there is the tile `further` behind the current one.
QN_DEVICE bool has_tile(const TileWalk& walk, u32 further = 0) { return walk.index + further < walk.tiles_m * walk.tiles_n; }
QN_DEVICE void walk_on(TileWalk& walk) {
  const u32 group_tiles = kTilesOfGroup * walk.tiles_n;
  walk.index += walk.step;
  walk.group += walk.step_groups;
  walk.inside += walk.step - walk.step_groups * group_tiles;
  if (walk.inside < group_tiles) return;
  ++walk.group;
  walk.inside -= group_tiles;
}
QN_DEVICE TilePlace place_of(const TileWalk& walk) { return place_in_group(walk.group, walk.inside, walk.tiles_m); }

}  // namespace quern::gemm
