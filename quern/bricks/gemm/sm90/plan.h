// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What plans of products on Hopper share: tiles and their times, rings that fill shared memory, tensor maps.
#pragma once
#include "quern/base/tensor_view.h"
#include "quern/bricks/gemm/sm90/spec.h"
#include "quern/device/device.h"

namespace quern::gemm {

/// Multiprocessors that kernels and variants are chosen for: those of an H100 or H200. GPUs of the arch with fewer run the same
/// kernels, so that one pack serves all; grids and splits of K are for the GPU at hand.
constexpr i32 kSm90Sms = 132;

/// A tile of m x n of the kernels for many rows, in `stages` at most: with_room(). `cost` is the time of 128 rows of a column for 1 of K
/// beside that of those of its table that have 1; storing them takes as long as `store` of K more than that does. `pair`: two blocks make
/// two tiles, one above the other; `tail`: columns of narrower tiles behind those of n.
struct Sm90Tile {
  i32 n, stages;
  double cost;
  bool alternate = false;
  i32 m = 128;
  double store = 0;
  bool pair = false;
  i32 tail = 0;
  i32 blocks = 1;   // that share a multiprocessor, of kernels for few rows
  i32 swapped = 0;  // of many rows: TilesSm90::swapped; m is still rows of a, the most of them, and n 128
};
/// Rows that are made at a time, by one block or by a pair of them.
constexpr i32 rows_at_once(const Sm90Tile& t) { return pair_blocks(t) * t.m; }
/// wgmma's columns of a tile for many rows, whose other dim is its rows.
constexpr i32 wgmma_columns(const Sm90Tile& t) { return t.swapped ? t.m : t.n; }
/// Blocks of a kernel with `tiles` tiles of so many rows: one at least, or one pair.
inline i64 blocks_of(const Sm90Tile& t, i64 tiles, i32 sms) {
  return pair_blocks(t) * max_of<i64>(1, min_of<i64>(sms / pair_blocks(t), tiles));
}
/// gemm.dense's. A stage of a tile in turn feeds one warpgroup, and what follows a tile lies beside the other one's products. Costs are an
/// H200's (README). Those not in turn of 192, 176 and 128 columns are also what sums parts of K. Of swapped tiles the cost is that of 128
/// rows of a or more: kFewColumns in many_rows.cpp.
constexpr Sm90Tile kDenseSm90Tiles[] = {{256, 4, 1},
                                        {224, 4, 1.025},
                                        {192, 5, 1.01, true},
                                        {176, 5, 1.015, true},
                                        {160, 5, 1.02, true},
                                        {144, 6, 1.025, true},
                                        {128, 6, 0.999, true},
                                        {112, 7, 1.016},
                                        {96, 7, 1.046},
                                        {192, 5, 1.005},
                                        {176, 5, 1.02},
                                        {128, 6, 0.998},
                                        {.n = 128, .stages = 4, .cost = 1.01, .m = 256, .swapped = 208},
                                        {.n = 128, .stages = 5, .cost = 1.01, .m = 192, .swapped = 144},
                                        {.n = 128, .stages = 6, .cost = 1.1, .m = 128, .swapped = 72}};
/// Its tiles of swap_ab_sm90 for more than 128 rows: m rows of a at most, wgmma's columns, and 64 rows of b for each warpgroup.
constexpr Sm90Tile kDenseSwappedTiles[] = {
    {.n = 64, .stages = 16, .cost = 1.297, .m = 64},  {.n = 64, .stages = 16, .cost = 1.241, .m = 96},
    {.n = 64, .stages = 16, .cost = 0.997, .m = 128}, {.n = 64, .stages = 16, .cost = 0.983, .m = 160},
    {.n = 64, .stages = 16, .cost = 0.939, .m = 256}, {.n = 128, .stages = 16, .cost = 1.102, .m = 96},
    {.n = 128, .stages = 16, .cost = 1.062, .m = 160}};
/// Those of which each warpgroup has half of the rows: of products of groups, and of gemm.dense where a block sums parts of K. b is read
/// from shared memory twice for 128 rows, 80 bytes a clock for 256 columns, 85 for 192, 96 for 128.
constexpr Sm90Tile kHalvedSm90Tiles[] = {{256, 4, 1}, {192, 5, 1.02}, {176, 5, 1.03}, {128, 6, 1.1}};
/// Storing a column, where nobody multiplies meanwhile, takes as long as this much of K: 2.4 us of a tile of 256 columns. For the tables
/// above of products of groups, whose costs were found with it. gemm.dense and gemm.scaled have their stores in many_rows.h.
constexpr double kSm90StoreCost = 262;

/// Rounds of so many tiles, or pairs of them: the last one takes as long as a full one.
inline i64 rounds_of(const Sm90Tile& t, i64 tiles) { return ceil_div<i64>(tiles, kSm90Sms / pair_blocks(t)); }
/// Columns of out that a multiprocessor makes one after another then.
inline i64 columns_in_rounds(const Sm90Tile& t, i64 tiles) { return rounds_of(t, tiles) * t.n; }
/// The tile with the least time. columns_of(tile): columns_in_rounds(), or as many as take as long; 0: not this one.
template <size_t count, class Columns>
const Sm90Tile& least_time(const Sm90Tile (&tiles)[count], i64 k, double store_cost, const Columns& columns_of) {
  const Sm90Tile* best = nullptr;
  double best_time = 1e300;
  for (const Sm90Tile& t : tiles) {
    const i64 columns = columns_of(t);
    const double time = double(columns) * (t.m / 128) * (double(k) * t.cost + store_cost + t.store);
    if (columns > 0 && time < best_time) best_time = time, best = &t;
  }
  return *best;
}

/// The tiles of a Config, where with_room() changes the stages.
inline TilesSm90& tiles_of(TilesSm90Config& c) { return c.block.tiles; }
inline TilesSm90& tiles_of(NarrowSm90Config& c) { return c.block.tiles; }
/// A config with as many stages, up to those it has, as its results' boxes and its scales leave room for.
template <class Config>
Config with_room(Config c, const DeviceInfo& device) {
  while (block_bytes(c) > device.smem_block) --tiles_of(c).stages;
  return c;
}

/// Tiles of the kernels for few rows, and how many of their blocks a multiprocessor shall hold.
struct SwapAbShape {
  SwapAbSm90 tiles;
  i32 min_blocks;
};
/// The tile and ring of the kernels for few rows, with stages of one chunk. By n and the rows of a tile of a alone, so that few kernels
/// serve all m. A block has a multiprocessor's shared memory for its ring, as long as there is a tile of b for each multiprocessor at most;
/// beyond, two blocks share one.
SwapAbShape swapped_tile(i64 m, i64 n, const DeviceInfo& device);
/// As many stages, up to 16, as min_blocks of its blocks, of bytes(config) each, leave room for.
void fill_multiprocessor(SwapAbShape& shape, const DeviceInfo& device, i32 (*bytes)(const SwapAbSm90&));
/// The same of dense_swap_smem() bytes.
void fill_multiprocessor(SwapAbShape& shape, const DeviceInfo& device);
i64 swapped_tiles(const SwapAbSm90& tiles, i64 m, i64 n);
/// The number of parts of K with which such a kernel takes least, while each has one of `sms` multiprocessors; a row of a or b is
/// `row_bytes`.
i32 swapped_splits(const SwapAbSm90& tiles, i64 m, i64 n, i64 row_bytes, i64 sms, const Rates& rates);

/// Map of an operand for tiles of `rows` rows, 128 bytes of K of each.
TensorMapSpec sm90_operand(const TensorView& operand, i32 rows, Major major = Major::k);
/// Rows of a box of a, which has m, for tiles of `rows` rows: no more than there are of a K-major one.
i32 sm90_few_rows(i64 m, i32 rows, Major major = Major::k);
/// Map of a K-major operand for tiles of `rows` rows, `chunks` times 128 bytes of K of each, those of eight rows in turn. Rows are whole
/// chunks, and a multiple of eight of them. Strides do not ascend: the driver of an H200 takes that, as TMA itself has no such rule.
TensorMapSpec sm90_operand_in_turn(const TensorView& operand, i32 rows, i32 chunks);
/// Map of a K-major operand of `rows` rows for boxes of all of them and `chunks` times 128 bytes of K, chunk by chunk.
TensorMapSpec sm90_few_rows_operand(const TensorView& operand, i32 rows, i32 chunks);
/// How narrow tiles cover out: tiles of `rows` rows, `tiles_m` of them above each other, and `columns` columns, of which `splits` blocks
/// each sum a part of K, or which a block makes `passes` of, one after another; `warpgroups_n` share the columns of each.
struct NarrowTiles {
  i32 rows, columns, tiles_m, splits, passes = 1, warpgroups_n = 1;
  i64 blocks(i64 n) const { return ceil_div<i64>(n, columns) * tiles_m * splits; }
  /// Whether they are enough for four fifths of kSm90Sms multiprocessors: of 2120 columns, just beyond 16 for each, they are 89 of 24.
  bool occupy(i64 n) const { return 5 * blocks(n) >= 4 * kSm90Sms; }
};
/// A multiple of eight columns, about n / 132 of them and at least 16; twice as many where K is split, for up to `most_split` columns for
/// each multiprocessor (of more than 64 rows 16), or of more than 64 rows, up to `most_of_pairs`, where two tiles of 64 rows are one above
/// the other.
NarrowTiles narrow_tiles(i64 m, i64 n, i32 most_split, i32 most_of_pairs);
/// Columns of a tile: a share is n / 132 for each of `blocks` above each other, and `passes` tiles one after another make it up.
i32 narrow_columns(i64 n, i32 blocks, i32 passes = 1, i32 multiple = 8);
/// Columns of b's rows for each multiprocessor.
i32 narrow_share(i64 n);
/// Map of results of 16 bits, [m, n] or [groups, m, n], for the boxes of a warp; of c the same.
TensorMapSpec sm90_results(const TensorView& out, const BlockSm90& block);

}  // namespace quern::gemm
