// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/dense_call.h"
#include "quern/ops/gemm/dense_sm90.h"

namespace quern::gemm {

using A = DenseArgs;

static const jit::Kernel<DenseSm90Config, DenseSm90Params> narrow{"quern/ops/gemm/dense_narrow_sm90.cuh", "dense_narrow_sm90"};

/// Columns of a tile: a share is n / 132 for each of `blocks` above each other, and `passes` tiles one after another make it up.
static i32 columns_of(i64 n, i32 blocks, i32 passes = 1) { return i32(max_of<i64>(16 * blocks, round_up<i64>(ceil_div<i64>(n * blocks, i64(kSm90Sms) * passes), 8))); }
i32 narrow_share(i64 n) { return columns_of(n, 1); }

/// A multiprocessor takes in 64 bytes a clock, and what it takes in of a is none of the ring's for b: of tiles of 16 columns a is the larger part, and so it is of
/// wider ones beside 128 rows. m = 64: (2112, 7168) 10.8 us with K in two and 12.2; m = 128: 12.9 and 17.5. Pairs and one tile of 128 rows: (7168, 16384) 60.5 and 65.2,
/// (7168, 2048) 10.2 and 10.5, (5120, 5120) 16.0 and 18.2 of swap_ab, (12288, 2048) 16.8 and 15.4.
NarrowTiles narrow_tiles(i64 m, i64 n, i32 most_split, i32 most_of_pairs) {
  const i32 share = narrow_share(n), rows = m <= 64 ? 64 : 128;
  if (share <= (m <= 64 ? most_split : min_of(16, most_split))) return {rows, 2 * share, 1, 2};
  if (m > 64 && share <= most_of_pairs) return {64, columns_of(n, 2), 2, 1};
  return {rows, share, 1, 1};
}

/// Up to here K is short: wide tiles have few steps, so what follows the last bytes counts.
constexpr i64 kShortK = 2048;

/// Columns a multiprocessor up to which a block has one tile. Beyond, one and two tiles: m = 16 (18432, 4096) 37.4 us and 36.3, (24576, 1536) 19.9 and 19.6; m = 64 (24576, 1536) 20.5 and
/// 20.1, (32768, 512) 11.2 and 10.8; m = 128 (32768, 512) 12.6 and 12.1. But m = 64 (16384, 1024) 10.7 and 10.6, (12288, 2048) 14.1 and 14.8, m = 128 (16384, 4096) 35.5 and 35.7.
static i32 most_of_one_tile(const Problem& p, i64 m) { return m <= 16 ? 128 : m <= 64 || p[Axis::k] <= kShortK ? 176 : 192; }

/// K in two, m = 64: (4096, 14336) 29.9 us and 30.9, (4096, 7168) 16.5 and 16.6; but (4096, 4096) 11.8 and 10.9, and at m = 1 (4096, 14336) 30.0 and 29.7.
/// Several tiles, m = 128: two of 64 rows above each other and of 128 rows (28672, 4096) 59.3 us and 61.1, (128256, 4096) 266.7 and 269.8, (152064, 3584) 294.9 and 276.9.
static NarrowTiles narrow_tiles(const Problem& p, i64 m) {
  const i64 n = p[Axis::n];
  if (const i32 share = narrow_share(n); share > most_of_one_tile(p, m)) {
    const bool pairs = m > 64 && p[Axis::k] > kShortK && share <= 256;
    const i32 passes = ceil_div(share, 128), high = pairs ? 2 : 1;
    return {m > 64 && !pairs ? 128 : 64, columns_of(n, high, passes), high, 1, passes};
  }
  return narrow_tiles(m, n, p.batch_invariant ? 0 : m > 32 && p[Axis::k] >= 7168 ? 32 : 16, 80);
}

/// Stages of two chunks of K, of one beside 128 rows of a. Wide tiles of a short K have stages of one, and two warpgroups beside each other finish sooner what came last:
/// (24576, 1536), m = 64: 20.6 us, 21.4 with one warpgroup, 21.3 with two chunks, 21.2 with both; k = 4096 1 % slower. Where a block has several tiles, one chunk and two: m = 64 (32768, 512)
/// 10.8 us and 11.3, pairs (28672, 4096) 59.3 and 62.0, but m = 16 (24576, 1536) 19.9 and 19.6; two warpgroups for 64 rows and one: m = 128 (32768, 512) 12.1 and 12.8.
static DenseSm90Config config_of(const Problem& p, const DeviceInfo& device) {
  const NarrowTiles tiles = narrow_tiles(p, p[Axis::m]);
  DenseSm90Config c{.dtype = p.dtype(&A::a), .out_dtype = p.dtype(&A::out), .tile_m = tiles.rows, .tile_n = tiles.columns, .fold = tiles.splits > 1, .has_c = p.tensor(&A::c).present,
                    .activation = i32(p.attr(&A::activation)), .by_lanes = 1};
  c.walk = tiles.passes > 1;
  const bool short_k = p[Axis::k] <= kShortK, beside = short_k && c.tile_n % 16 == 0 && (c.tile_m == 64 ? c.tile_n > 128 : c.walk);
  c.across = beside ? 2 : 1;
  c.chunks = c.tile_m == 128 || beside || (c.walk && (tiles.high > 1 || (short_k && p[Axis::m] > 16))) ? 1 : 2;
  c.threads = 128 * narrow_warpgroups(c) + 64;
  c.stages = 16;
  return with_room(c, device);
}

/// Measured on an H200, ten shapes: up to 8 % faster than swap_ab_sm90 from one row on. Wider shares of up to 16 rows are not: (28672, 4096) 55.6 us and 56.0, (128256, 4096) 234 and 239.
static Rejection rejects_slow(const Problem& p) {
  constexpr i32 kMostOfFewest = 192;
  // Whatever m: else those widths whose pairs of tiles alone occupy would meet a ninth kernel
  if (!narrow_tiles(p, 1).occupy(p[Axis::n])) return {"n", p[Axis::n], "such that tiles are whole shares of {} multiprocessors", kSm90Sms};
  if (p[Axis::m] <= 16 && narrow_share(p[Axis::n]) > kMostOfFewest) return {"n", p[Axis::n], "at most {} with up to 16 rows", kMostOfFewest * kSm90Sms};
  return {};
}

Rejection rejects_narrow_sm90(const Problem& p, const DeviceInfo& device) {
  if (const Rejection r = rejects_sm90_operands(p, device)) return r;
  if (major_of(p.tensor(&A::a)) != Major::k) return {"a", "M-major", "K-major"};
  if (major_of(p.tensor(&A::b)) != Major::k) return {"b", "N-major", "K-major"};
  if (p[Axis::m] > 128) return {"m", p[Axis::m], "at most {}", 128};
  if (p[Axis::k] % kDenseSm90TileK != 0) return {"k", p[Axis::k], "a multiple of {}", kDenseSm90TileK};
  if (p.batch_invariant && invariant_parts(p, device) > 1) return {"n and k", "those with parts of K", "one part of K with batch_invariant"};
  if (p.variant < 0)
    if (const Rejection r = rejects_slow(p)) return r;
  if (config_of(p, device).stages < 3) return {"n", p[Axis::n], "so few that three stages fit", 0};
  return {};
}

static DenseSm90Params params(const Call<DenseArgs>& c) {
  const auto& config = c.plan.launches[0].spec.config_as<DenseSm90Config>();
  return sm90_params(c, sm90_few_rows(c.problem, config.tile_m), config.tile_n, 1, config.chunks);
}

Plan plan_narrow_sm90(const Problem& p, const DeviceInfo& device, const Knobs&) {
  const DenseSm90Config config = config_of(p, device);
  const NarrowTiles tiles = narrow_tiles(p, p[Axis::m]);
  Plan plan;
  const i64 blocks = tiles.blocks(p[Axis::n]), even = max_of(device.sms / 2 * 2, 2);  // next_tile() keeps to a block's rows
  plan.launch<params>(narrow, config, {.x = config.walk ? min_of(even, blocks) : blocks, .smem = block_bytes(config), .cluster = tiles.splits, .pdl = p.pdl});
  return plan;
}

}  // namespace quern::gemm
