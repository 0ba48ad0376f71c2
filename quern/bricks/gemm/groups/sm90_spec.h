// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The grouped products on Hopper: tiles, ring and stores of gemm.dense's and gemm.scaled's kernels, whose Configs they have.
#pragma once
#include "quern/bricks/gemm/groups/spec.h"
#include "quern/bricks/gemm/sm90/scaled_spec.h"

namespace quern::gemm {

/// How tiles cover the n columns of every group: `wide` ones, then the narrower ones of the tail. The wide tiles of all groups come first,
/// and each block takes every blocks-th of all.
struct ColumnTiles {
  u32 wide, tail;
  u32 time;  // of the block that has most of them: kWideTime for a wide one, kTailTime for one of the tail
};
/// Of 192 and 128 columns: two rounds of a tail's tiles take 0.80 and 0.81 of the time of two of wide ones (H100, k = 7168, README).
constexpr u32 kWideTime = 5, kTailTime = 4;
/// Up to so many groups, whose rows a warp sees all at once, have a tail: the plan's rule.
constexpr i32 kTailGroups = 32;
/// With as many wide tiles of tile_n columns as `rounds` rounds of the blocks are, if `along_m` of them make the rows of all groups, and
/// the rest of the columns in tiles of `tail_n`.
QN_HOST_DEVICE constexpr ColumnTiles column_tiles(u32 rounds, u32 along_m, u32 blocks, u32 n, u32 tile_n, u32 tail_n) {
  const u32 all = (n + tile_n - 1) / tile_n, wide = along_m * all <= rounds * blocks ? all : rounds * blocks / along_m;
  const u32 tail = wide == all ? 0 : (n - wide * tile_n + tail_n - 1) / tail_n;
  const u32 of_wide = (wide * along_m + blocks - 1) / blocks, of_both = ((wide + tail) * along_m + blocks - 1) / blocks;
  return {wide, tail, kWideTime * of_wide + kTailTime * (of_both - of_wide)};
}
/// Numbers of rounds that are tried, from those of wide tiles alone downwards: by a lane each.
constexpr u32 kColumnWays = 32;
/// Rounds of wide tiles alone.
QN_HOST_DEVICE constexpr u32 wide_rounds(u32 along_m, u32 blocks, u32 n, u32 tile_n) {
  return (along_m * ((n + tile_n - 1) / tile_n) + blocks - 1) / blocks;
}

struct GroupedSm90Params {
  TensorMap a;  // boxes of tile_m rows, 128 bytes of each; one matrix, or one for each group
  TensorMap
      b;  // the same of tile_n rows, of pairs half of them; a matrix for each group. N-major: [groups, k, n], boxes of 64 of k and 64 of n
  GroupedRows rows;
  void* out;           // rows aligned to 16 bytes
  i64 out_stride;      // elements from row to row
  i64 out_group;       // elements from group to group; 0 where groups lie in one matrix
  i32 n, k;            // n a multiple of 8
  TensorMap b_tail;    // b's with boxes of the rows of the tail's tiles, where there is one
  TensorMap results;   // of out [matrices, rows, n], where they leave by TMA
  i32 a_rows, b_rows;  // from a matrix to the next: maps of the rows of all of them, [rows, k]; 0, where these are no whole rows:
                       // [matrices, rows, k]
};

struct GroupedScaledSm90Params {
  GroupedSm90Params gemm;
  Scales scales_a, scales_b;
  i64 scales_a_group, scales_b_group;
  ScaleBoxes boxes;  // of scales_a
};

}  // namespace quern::gemm
