// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/dense/call.h"
#include "quern/ops/gemm/dense/sm90.h"

namespace quern::gemm {

using A = DenseArgs;

static const jit::Kernel<SwapAbConfig, DenseSm90Params> swap_ab{"quern/ops/gemm/dense/swap_ab_sm90/kernel.cuh", "dense_swap_ab_sm90"};

/// Parts of K without batch_invariant. Of tiles of up to 64 rows and from 2048 columns on two at least where they have a multiprocessor each: with pdl, blocks of fewer come to lie beside each other on what the
/// kernels before leave free, and share a GPC's way to the L2: 41 us for (4096, 14336) in a decoder layer, 27 of two parts. Alone two are 3 % slower to 3 % faster.
static i32 fast_parts(const SwapAbSm90& c, i64 m, i64 n, i64 k, const DeviceInfo& device) {
  const i64 sms = device.sms;
  const i32 parts = swapped_splits(c, m, n, 2 * k, sms, device.rates);
  return parts == 1 && c.tile_m <= 64 && k >= 2048 && 2 * swapped_tiles(c, m, n) <= sms ? 2 : parts;
}

/// With stages of two chunks where these are the better ones, on an H200 2 to 7 % faster: where rows of b are whole chunks and three stages fit. Of 128 rows of a
/// they are 48 KB, of which the first takes long: from 7168 columns a part on ((6144, 4096): 17.5 us and 16.5; (7168, 16384): 65.3 and 69.1).
static SwapAbShape with_chunks(const SwapAbShape& shape, const Problem& p, const DeviceInfo& device) {
  const i64 n = p[Axis::n], k = p[Axis::k];
  if (shape.tiles.b_major != Major::k || k % kDenseSm90TileK != 0) return shape;
  if (shape.tiles.tile_m == 128 && k / swapped_splits(swapped_tile(128, n, device).tiles, 128, n, 2 * k, kSm90Sms, device.rates) < 7168) return shape;
  SwapAbShape two = shape;
  two.tiles.chunks = 2;
  fill_multiprocessor(two, device);
  return two.tiles.stages < 3 ? shape : two;
}

/// Rows of a that each of the tiles above each other has: all of them, or as even a share as whole eights make. What the L2 sends is the time of few tiles: 160 rows in tiles of 80 and of 128 (2112, 7168).
static i32 swapped_rows(i64 m, const SwapAbSm90& c) {
  const i64 high = ceil_div<i64>(m, c.tile_m);
  if (c.a_major != Major::k) return c.tile_m;
  return i32(high == 1 ? m : round_up<i64>(ceil_div(m, high), 8));
}

/// Parts of K, each summed by one block of a cluster.
struct Parts {
  i32 count;
};

static DenseSm90Params params(const Call<DenseArgs, Parts>& c) {
  const SwapAbSm90& tiles = c.config<SwapAbConfig>().block.tiles;
  const i32 rows = swapped_rows(c.problem[Axis::m], tiles);
  DenseSm90Params params = sm90_params(c, sm90_operand(c.args.a, rows, tiles.a_major), tiles.tile_n, c.choice.count, tiles.chunks);
  params.rows = rows;
  return params;
}

i32 invariant_parts(const Problem& p, const DeviceInfo& device) {
  return swapped_splits(swapped_tile(64, p[Axis::n], device).tiles, 64, p[Axis::n], 2 * p[Axis::k], kSm90Sms, device.rates);
}

static Rejection slower(const Problem& p, const DeviceInfo&) {
  if (const Rejection r = slower_m_major(p)) return r;
  if (!takes_swapped(p)) return {"m", p[Axis::m], "at most {}, or so few columns that tiles of 128 x 64 have a multiprocessor each", 128};
  return {};
}

/// Tiles, each of so many blocks of a cluster.
struct SwappedTiles {
  SwapAbShape shape;
  i32 splits;
};

/// Time in ns of more than 128 rows, without the start and the end: a multiprocessor takes 143 bytes a ns and the L2 sends 10.5 KB. Where K is split the two blocks of a TPC share no rows of b: 75 bytes,
/// 8.7 KB (an H100). Adding up splits as in estimate_ns().
static double estimate_many_ns(const SwapAbSm90& c, i64 m, i64 n, i64 k, i32 splits) {
  const double rows = swapped_rows(m, c), row_bytes = 2 * double(k) / splits, blocks = double(swapped_tiles(c, m, n) * splits), sums = c.tile_m * c.tile_n / 8192.0;
  if (splits == 1) return max_of((rows + c.tile_n) * row_bytes / 143, blocks * (rows + c.tile_n / 2) * row_bytes / 10500);
  return max_of((rows + c.tile_n) * row_bytes / 75, blocks * (rows + c.tile_n) * row_bytes / 8700) + 500 + 1250 * (splits - 1) * sums * sums;
}

/// Of more than 128 rows tiles of 64 or 128, whose parts of K are one, two or four blocks: clusters of three take four multiprocessors' room ((1280, 5120), m = 136, in 40 of them 18 us).
static SwappedTiles tiles_of_many(const Problem& p, const DeviceInfo& device) {
  const i64 m = p[Axis::m], n = p[Axis::n], k = p[Axis::k];
  SwappedTiles best{};
  double best_ns = 1e300;
  for (SwapAbShape c : {swapped_tile(128, n, device), swapped_tile(64, n, device)}) {
    c.tiles.a_major = major_of(p.tensor(&A::a));
    for (i32 splits = p.batch_invariant ? invariant_parts(p, device) : 1; splits <= i32(kDenseSwapMaxSplits); splits *= 2) {
      const bool fits = swapped_tiles(c.tiles, m, n) * splits <= kSm90Sms, first = best.splits == 0;  // asked for by name, or parts of batch_invariant, may be more
      if (!fits && !first) break;
      if (const double ns = estimate_many_ns(c.tiles, m, n, k, splits); ns < best_ns) best_ns = ns, best = {c, splits};
      if (p.batch_invariant) break;
    }
  }
  return best;
}

/// Of more than 64 rows tiles of 64 instead of 128 where both have one of kSm90Sms multiprocessors each: each reads two thirds as much, and fewer parts are added up. m = 128:
/// (4096, 7168) 17.6 us and 19.8, (4096, 4096) 12.1 and 13.7, (2112, 7168) 15.0 and 15.8.
static SwappedTiles tiles_of(const Problem& p, const DeviceInfo& device) {
  const i64 m = p[Axis::m], n = p[Axis::n];
  if (m > 128) return tiles_of_many(p, device);
  const SwapAbShape half = swapped_tile(64, n, device);
  const i32 parts = p.batch_invariant ? invariant_parts(p, device) : 1;
  const SwapAbShape c = m > 64 && swapped_tiles(half.tiles, m, n) * parts <= kSm90Sms ? half : swapped_tile(m, n, device);
  return {c, p.batch_invariant ? parts : fast_parts(c.tiles, m, n, p[Axis::k], device)};
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  auto [shape, splits] = tiles_of(p, device);
  shape.tiles.a_major = major_of(p.tensor(&A::a));
  shape.tiles.b_major = major_of(p.tensor(&A::b));
  shape = with_chunks(shape, p, device);
  const SwapAbSm90& tiles = shape.tiles;
  const SwapAbConfig config{{ending_of(p), tiles}, swap_ab_threads(tiles), shape.min_blocks};
  Plan plan;
  plan.launch<params>(swap_ab, config, {.x = swapped_tiles(tiles, p[Axis::m], p[Axis::n]) * splits, .smem = dense_swap_smem(tiles).bytes, .cluster = u32(splits), .pdl = p.pdl}, Parts{splits});
  return plan;
}

static const JoinVariant join("gemm.dense", 20, {"swap_ab_sm90", rejects_sm90_operands, plan, slower});

}  // namespace quern::gemm
