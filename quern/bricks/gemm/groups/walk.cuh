// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Which group a tile belongs to. Tiles are counted group by group: a group has its rows in steps of tile_m, times the tiles along n. A warp
// looks at 32 groups at a time: a lane reads where its group begins and ends, prefix sums count the tiles. Blocks ask for ascending tiles,
// so each walks over the groups once. Pairs of tiles are counted along m through all groups, so all tiles are counted once before. The next
// pair along n may lie further back along m. Then, with more than 32 groups, the walk begins anew.
#pragma once
#include "quern/bricks/gemm/groups/params.cuh"
#include "quern/bricks/gemm/groups/spec.h"
#include "quern/bricks/gemm/tile_order.cuh"
#include "quern/kit/kit.cuh"

namespace quern::gemm {

/// A tile and the rows of its group.
struct GroupedTile {
  i32 group;
  i32 begin, rows;    ///< of the group
  TilePlace at;       ///< among the tiles of the group
  i32 column = 0;     ///< the first one, as each_tile() tells it
  bool tail = false;  ///< of the last columns, which have narrower tiles (column_tiles())
};

struct GroupedWalk {
  i32 chunk;        ///< the first of the lanes' groups
  i32 bound;        ///< the largest bound of the groups before them
  u32 before;       ///< tiles along m of the groups before them
  u32 tiles;        ///< of the lanes' groups
  i32 begin, rows;  ///< of the lane's group
  u32 upto;         ///< tiles of the lanes' groups up to this one
};

QN_DEVICE i32 grouped_bound(const GroupedRows& p, i64 index) {
  return min_of(max_of(ptx::ld_global<i32>(static_cast<const i32*>(p.data) + index), 0), p.rows);
}

/// The lanes look at the 32 groups from walk.chunk on.
template <i32 kTileM>
QN_DEVICE void look_at_groups(const GroupedRows& p, GroupedWalk& walk) {
  const i32 group = walk.chunk + i32(ptx::lane_id());
  const bool exists = group < p.groups;
  i32 begin = 0, end = 0;
  if (p.kind == GroupedRowsKind::counts) {
    if (exists) end = grouped_bound(p, group);
  } else if (p.kind == GroupedRowsKind::spans) {
    if (exists) begin = grouped_bound(p, 2 * i64(group)), end = grouped_bound(p, 2 * i64(group) + 1);
  } else {
    const bool next = p.kind == GroupedRowsKind::bounds;
    const i32 own = exists ? grouped_bound(p, i64(group) + (next ? 1 : 0)) : 0;
    end = max_of(walk.bound, warp_prefix_max(own));  // one that does not ascend counts as the largest so far
    begin = ptx::shfl_up(end, 1);
    if (ptx::lane_id() == 0) begin = walk.bound;
    walk.bound = ptx::shfl(end, 31);
    if (!next) begin = i32(min_of(round_up(u32(begin), u32(p.alignment)), u32(end)));
  }
  walk.begin = begin;
  walk.rows = max_of(end - begin, 0);
  walk.upto = warp_prefix_sum((u32(walk.rows) + kTileM - 1) / kTileM);
  walk.tiles = ptx::shfl(walk.upto, 31);
}

/// Before the first groups. It looks at none: each place in a kernel that does takes 50 ms of its compile time.
QN_DEVICE GroupedWalk start_walk(const GroupedRows& p) {
  GroupedWalk walk{};
  walk.chunk = -32;
  if (p.kind == GroupedRowsKind::bounds) walk.bound = grouped_bound(p, 0);
  return walk;
}
/// Goes on to the next 32 groups; false behind the last ones.
template <i32 kTileM>
QN_DEVICE bool walk_on(const GroupedRows& p, GroupedWalk& walk) {
  if (p.groups - walk.chunk <= 32) return false;
  walk.before += walk.tiles;
  walk.chunk += 32;
  look_at_groups<kTileM>(p, walk);
  return true;
}

/// Goes on to the groups among which tile `along_m` is, counted along m through all groups; false past the last one.
template <i32 kTileM, class Index>
QN_DEVICE bool walk_to(const GroupedRows& p, GroupedWalk& walk, Index along_m) {
  while (along_m >= walk.before + walk.tiles)
    if (!walk_on<kTileM>(p, walk)) return false;
  return true;
}
/// The group of that tile, which is among the lanes'; how many tiles along m are before the group's.
template <i32 kTileM>
QN_DEVICE u32 group_of_tile(const GroupedWalk& walk, u32 along_m, GroupedTile& tile) {
  const int lane = first_lane_above(walk.upto, along_m - walk.before);
  tile.group = walk.chunk + lane;
  tile.begin = ptx::shfl(walk.begin, lane);
  tile.rows = ptx::shfl(walk.rows, lane);
  return walk.before + ptx::shfl(walk.upto, lane) - (u32(tile.rows) + kTileM - 1) / kTileM;
}

/// Tile `index`, whose group is among the lanes', of tiles_n along n.
template <i32 kTileM, class Index>
QN_DEVICE void place_tile(const GroupedWalk& walk, Index index, u32 tiles_n, GroupedTile& tile) {
  const u32 first = group_of_tile<kTileM>(walk, u32(index / tiles_n), tile);
  tile.at = tile_in_order<Index>(index - Index(first) * tiles_n, (u32(tile.rows) + kTileM - 1) / kTileM, tiles_n);
}
/// Finds tile `index`, which is not before those asked for earlier; false past the last one. By all lanes of a warp.
template <i32 kTileM, class Index>
QN_DEVICE bool find_tile(const GroupedRows& p, GroupedWalk& walk, Index index, u32 tiles_n, GroupedTile& tile) {
  if (!walk_to<kTileM>(p, walk, index / tiles_n)) return false;
  place_tile<kTileM>(walk, index, tiles_n, tile);
  return true;
}

/// Tiles along m of all groups, by all lanes of a warp. The walk begins anew, but of up to 32 groups it is there already.
template <i32 kTileM>
QN_DEVICE u32 all_tiles(const GroupedRows& p, GroupedWalk& walk) {
  while (walk_on<kTileM>(p, walk)) {}
  const u32 all = walk.before + walk.tiles;
  if (p.groups > 32) walk = start_walk(p);
  return all;
}
/// Finds this block's tile of pair `index`; `of_pair`, 0 or 1, is which of the two it is. A pair is two tiles that follow each other along
/// m, counted through all groups: `all` tiles, so the two may be of different groups. Where `all` is odd, the second tile of the last pair
/// lies behind the rows of the last group. False past the last pair. By all lanes of a warp.
template <i32 kTileM>
QN_DEVICE bool find_tile_of_pair(const GroupedRows& p, GroupedWalk& walk, u32 all, u32 index, u32 of_pair, u32 tiles_n, GroupedTile& tile) {
  const u32 pairs_m = (all + 1) / 2;
  if (index >= pairs_m * tiles_n) return false;
  const TilePlace pair = tile_in_order(index, pairs_m, tiles_n);
  const u32 along_m = 2 * pair.m + of_pair, here = min_of(along_m, all - 1);
  if (here < walk.before) walk = start_walk(p);  // tiles that follow each other along n go back along m
  walk_to<kTileM>(p, walk, here);
  tile.at = {along_m - group_of_tile<kTileM>(walk, here, tile), pair.n};
  return true;
}

/// The block takes every gridDim.x-th tile: make(params, row, column) makes it, with params_of(tile). There are no registers for a walk
/// beside the sums.
template <i32 kTileM, i32 kTileN, class Params, class ParamsOf, class Make>
QN_DEVICE void each_grouped_tile(const GroupedRows& p, i64 n, u8* memory, const ParamsOf& params_of, const Make& make) {
  const u32 tiles_n = u32((n + kTileN - 1) / kTileN);
  QN_NO_UNROLL
  for (u64 index = blockIdx.x;; index += gridDim.x) {
    GroupedWalk walk = start_walk(p);
    GroupedTile tile;
    if (!find_tile<kTileM>(p, walk, index, tiles_n, tile)) return;
    make_with<Params>(
        memory, [&] { return params_of(tile); },
        [&](const Params& params) { make(params, i64(tile.at.m) * kTileM, i64(tile.at.n) * kTileN); });
  }
}

}  // namespace quern::gemm
