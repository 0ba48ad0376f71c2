// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/schema.h"
#include "quern/ops/gemm/dense.h"
#include "quern/ops/gemm/dense_sm90_spec.h"

namespace quern::gemm {

/// Whether the operands are what tensor maps and whole 16-byte stores take.
Rejection rejects_sm90_operands(const Problem& problem, const DeviceInfo& device);
/// Variant warp_specialised_sm90 of gemm.dense; it and the next one take what rejects_sm90_operands() does.
Rejection slower_sm90(const Problem& problem, const DeviceInfo& device);
Plan plan_sm90(const Problem& problem, const DeviceInfo& device);
/// Variant swap_ab_sm90, for few rows of a.
Rejection slower_swap_ab_sm90(const Problem& problem, const DeviceInfo& device);
Plan plan_swap_ab_sm90(const Problem& problem, const DeviceInfo& device);
/// Variant narrow_sm90, for few rows of a, tiles of n / 132 columns.
Rejection rejects_narrow_sm90(const Problem& problem, const DeviceInfo& device);
Rejection slower_narrow_sm90(const Problem& problem, const DeviceInfo& device);
Plan plan_narrow_sm90(const Problem& problem, const DeviceInfo& device);

// ---- what they share ----

/// Multiprocessors that kernels and variants are chosen for: those of an H100 or H200. GPUs of the arch with fewer run the same
/// kernels, so that one pack serves all; grids and splits of K are for the GPU at hand.
constexpr i32 kSm90Sms = 132;

/// A tile of m x n of the kernels for many rows, in `stages` at most: with_room(). `cost` is the time of 128 rows of a column for 1 of K beside that of
/// those of its table that have 1; storing them takes as long as `store` of K more than that does. `pair`: two blocks make two tiles, one above the other; `tail`: columns of narrower tiles behind those of n.
struct Sm90Tile {
  i32 n, stages;
  double cost;
  bool alternate = false;
  i32 m = 128;
  double store = 0;
  bool pair = false;
  i32 tail = 0;
};
/// Rows that are made at a time, by one block or by a pair of them.
constexpr i32 rows_at_once(const Sm90Tile& t) { return pair_blocks(t) * t.m; }
/// Blocks of a kernel with `tiles` tiles of so many rows: one at least, or one pair.
inline i64 blocks_of(const Sm90Tile& t, i64 tiles, i32 sms) {
  return pair_blocks(t) * max_of<i64>(1, min_of<i64>(sms / pair_blocks(t), tiles));
}
/// gemm.dense's. A stage of a tile in turn feeds one warpgroup, and what follows a tile lies beside the other one's products. Costs are an H100's, of 713 times of 126 shapes from m = 160 to 8192.
constexpr Sm90Tile kDenseSm90Tiles[] = {{256, 4, 1.005}, {224, 4, 1}, {192, 5, 1, true}, {176, 5, 1.01, true}, {160, 5, 1.01, true}, {144, 6, 1.03, true}, {128, 6, 1.03, true}, {112, 7, 1.11}, {96, 7, 1.2}};
/// Those of which each warpgroup has half of the rows: of products of groups, and of gemm.dense where a block sums parts of K. b is read from shared memory twice for 128 rows, 80 bytes a clock for 256
/// columns, 85 for 192, 96 for 128.
constexpr Sm90Tile kHalvedSm90Tiles[] = {{256, 4, 1}, {192, 5, 1.02}, {176, 5, 1.03}, {128, 6, 1.1}};
/// Storing a column, where nobody multiplies meanwhile, takes as long as this much of K: 2.4 us of a tile of 256 columns. Of kHalvedSm90Tiles and gemm.scaled's, whose costs were found with it; kDenseSm90Tiles: dense_sm90.cpp.
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

/// A config with as many stages, up to those it has, as its results' boxes and its scales leave room for.
template <class Config>
Config with_room(Config c, const DeviceInfo& device) {
  while (block_bytes(c) > device.smem_block) --c.stages;
  return c;
}

/// Whether an a that is M-major is better left to a kernel that takes any alignment: it depends on m, so with batch_invariant it would depend
/// on m which kernel a row meets.
Rejection slower_m_major(const Problem& problem);
/// The tile, ring and threads of the kernels for few rows, with stages of one chunk. By n and the rows of a tile of a alone, so that few kernels serve all m. A
/// block has a multiprocessor's shared memory for its ring, as long as there is a tile of b for each multiprocessor at most;
/// beyond, two blocks share one.
DenseSwapConfig swapped_tile(i64 m, i64 n, const DeviceInfo& device);
/// As many stages, up to 16, as min_blocks of its blocks, of bytes(config) each, leave room for.
void fill_multiprocessor(DenseSwapConfig& config, const DeviceInfo& device, i32 (*bytes)(const DenseSwapConfig&));
i64 swapped_tiles(const DenseSwapConfig& config, i64 m, i64 n);
/// The number of parts of K with which such a kernel takes least, while each has one of `sms` multiprocessors; a row of a or b is `row_bytes`.
i32 swapped_splits(const DenseSwapConfig& config, i64 m, i64 n, i64 row_bytes, i64 sms, const Rates& rates);

/// Whether swap_ab_sm90 makes gemm.dense of so many rows: up to 128, or while each of its tiles of 128 x 64 has a multiprocessor, K being in one part. (2112, 7168), m = 512, 132 of them: 23.4 us and 28.9 of warp_specialised_sm90 (an H100).
bool takes_swapped(const Problem& problem);
/// Parts of K with RunOptions::batch_invariant: from n and k alone, as swapped_splits() gives for 64 rows on kSm90Sms multiprocessors.
i32 invariant_parts(const Problem& problem, const DeviceInfo& device);
/// Of the tiles along m, as a power of two, that warp_specialised_sm90 takes before the next ones along n: eight. Each group of them reads b from memory again, which of short K takes a good part of the products' time: there up to
/// 32, with up to 12 MB of a. One H100, m = 4096, 8192, 32 beside 8: k = 256, 512, 768, 1024, 1536 5 to 10, 5 to 6, 2 to 3, 2, 2 % faster where n is 16384 or more, with n = 8192 1 % faster to 2 slower; an H200 1 % faster, and of 62 smaller n 1.6 % faster to 1.6 slower, k = 256 1 slower. With longer K a's rows leave the
/// L2 (8192^3 7 % slower), and narrower tiles, which ask the L2 for more, take up to 20 % longer, as the multiprocessors of a GPC then share less (README).
i32 sm90_group_log2(i64 m, i64 k, i32 tile_n);
/// Map of an operand for tiles of `rows` rows, 128 bytes of K of each.
TensorMapSpec sm90_operand(const TensorView& operand, i32 rows, Major major = Major::k);
/// Rows of a box of a for tiles of `rows` rows: no more than there are of a K-major one.
i32 sm90_few_rows(const Problem& problem, i32 rows, Major major = Major::k);
/// Map of a K-major operand for tiles of `rows` rows, `chunks` times 128 bytes of K of each, those of eight rows in turn. Rows are whole chunks, and a multiple
/// of eight of them. Strides do not ascend: the driver of an H200 takes that, as TMA itself has no such rule.
TensorMapSpec sm90_operand_in_turn(const TensorView& operand, i32 rows, i32 chunks);
/// Map of a K-major operand of `rows` rows for boxes of all of them and `chunks` times 128 bytes of K, chunk by chunk.
TensorMapSpec sm90_few_rows_operand(const TensorView& operand, i32 rows, i32 chunks);
/// How narrow tiles cover out: tiles of `rows` rows, `high` of them, and `columns` columns, of which `splits` blocks each sum a part of K, or which a block makes `passes`
/// of, one after another; `beside` warpgroups share the columns of each.
struct NarrowTiles {
  i32 rows, columns, high, splits, passes = 1, beside = 1;
  i64 blocks(i64 n) const { return ceil_div<i64>(n, columns) * high * splits; }
  /// Whether they are enough for four fifths of kSm90Sms multiprocessors: of 2120 columns, just beyond 16 for each, they are 89 of 24.
  bool occupy(i64 n) const { return 5 * blocks(n) >= 4 * kSm90Sms; }
};
/// A multiple of eight columns, about n / 132 of them and at least 16; twice as many where K is split, for up to `most_split` columns for each multiprocessor (of more
/// than 64 rows 16), or of more than 64 rows, up to `most_of_pairs`, where two tiles of 64 rows are one above the other.
NarrowTiles narrow_tiles(i64 m, i64 n, i32 most_split, i32 most_of_pairs);
/// Columns of b's rows for each multiprocessor.
i32 narrow_share(i64 n);
/// Map of results of 16 bits, [m, n] or [groups, m, n], for the boxes of a warp; of c the same.
TensorMapSpec sm90_results(const TensorView& out, const DenseSm90Config& tiles);
/// Parameters for tiles of a as its map has them and of `rows_b` rows of b.
DenseSm90Params sm90_params(const Call<DenseArgs>& call, const TensorMapSpec& a, i32 rows_b, i32 parts, i32 chunks = 1);

}  // namespace quern::gemm
