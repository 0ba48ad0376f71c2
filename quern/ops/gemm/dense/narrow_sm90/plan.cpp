// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/dense/call.h"
#include "quern/ops/gemm/dense/sm90.h"

namespace quern::gemm {

using A = DenseArgs;

static const jit::Kernel<NarrowSm90Config, DenseSm90Params> narrow{"quern/ops/gemm/dense/narrow_sm90/kernel.cuh", "dense_narrow_sm90"};

/// Up to here K is short: tiles have few steps, so what follows the last bytes counts.
constexpr i64 kShortK = 2048;
/// From here on several tiles one after another are faster than a wider one for 17 to 64 rows, and with stages of two chunks.
constexpr i64 kSeveralTilesK = 1024;

/// The tiles for wgmma, by the columns of a multiprocessor's share (README, wide tiles).
/// * Up to 64 rows, beyond 128 columns: several narrower tiles, as the ring fills for one while the results of another are stored ((28672,
///   4096), m = 64, an H100: 80.0 us, and 84.9 by one tile). With K below kSeveralTilesK one tile of up to 256 columns is faster, except
///   for up to 16 rows.
/// * More than 64 rows: always pairs, of up to 256 columns.
/// * Two warpgroups share the columns of one tile from kNarrower on, and those of one pair from 176 columns on, with short K from 144.
/// * K in two up to 16 columns, and up to 32 for more than 16 rows and k >= 7168. (4096, 14336), m = 64, takes 29.9 us so, and 30.9 in
///   one part; with shorter K it loses. 17 to 32 rows gain nothing, but otherwise one (n, k) would meet nine kernels.
static NarrowTiles narrow_tiles(const Problem& p, i64 m) {
  constexpr i32 kMostOfPairs = 80, kNarrower = 128, kWidest = 256;
  const i64 n = p[Axis::n], k = p[Axis::k];
  const i32 share = narrow_share(n), high = m > 64 ? 2 : 1;
  if (high > 1 ? share <= kMostOfPairs : share < kNarrower) {
    NarrowTiles tiles = narrow_tiles(m, n, p.batch_invariant ? 0 : m > 16 && k >= 7168 ? 32 : 16, kMostOfPairs);
    if (k <= kShortK && tiles.tiles_m > 1 && tiles.columns > 128 && tiles.columns % 16 == 0) tiles.warpgroups_n = 2;
    return tiles;
  }
  const bool narrower = high == 1 && (m <= 16 || k >= kSeveralTilesK || share > kWidest);
  const i32 passes = ceil_div(share * high, narrower ? kNarrower : kWidest);
  const bool beside = high > 1 || passes == 1;
  return {64, narrow_columns(n, high, passes, beside ? 16 : 8), high, 1, passes, beside ? 2 : 1};
}

/// With batch_invariant rows have wgmma's order of sums.
static bool takes_mma(const Problem& p) { return p[Axis::m] <= kNarrowMmaRows && !p.batch_invariant; }
/// The tiles for up to 16 rows. A block makes its share of columns by several tiles, one after another. They have 32 columns, which is
/// faster than fewer and wider tiles; with K so short that the end of a tile counts they have 64. Another width is taken where the busiest
/// block then makes 2 % fewer columns. (README, mma.sync.)
static NarrowTiles mma_tiles(i64 n, i64 k) {
  constexpr i64 kShortest = 512;
  NarrowTiles best{kNarrowMmaRows, 16, 1, 1};
  if (n <= best.columns * kSm90Sms) return best;
  const auto passes_of = [&](i32 columns) { return ceil_div<i64>(ceil_div<i64>(n, columns), kSm90Sms); };
  best.columns = k <= kShortest ? 64 : 32;
  for (const i32 columns : {32, 24, 40, 56})
    if (100 * columns * passes_of(columns) < 98 * best.columns * passes_of(best.columns)) best.columns = columns;
  best.passes = i32(passes_of(best.columns));
  return best;
}
static NarrowTiles tiles_of(const Problem& p) { return takes_mma(p) ? mma_tiles(p[Axis::n], p[Axis::k]) : narrow_tiles(p, p[Axis::m]); }

/// 512 bytes of K of each row in a stage, or 1 KB of few rows where K is a multiple of it, as chunks behind its end take TMA longer than
/// others: memory is faster at longer pieces of a row, and at 80 KB of b in flight for each multiprocessor than at more, whose pieces come
/// in less order.
static TilesSm90 with_mma_stages(TilesSm90 c, i64 k) {
  c.chunks = c.tile_n <= 16 && k % 512 == 0 ? 8 : 4;
  const i32 bytes = c.tile_n * 128 * c.chunks;
  c.stages = (2 * 80 * 1024 + bytes - 1) / (2 * bytes);
  return c;
}

/// Stages of two chunks of K, but of one beside 128 rows of a, where two warpgroups share the columns, which finish sooner what came last,
/// and of several tiles with K below kSeveralTilesK beside more than 16 rows.
static NarrowSm90Config config_of(const Problem& p, const DeviceInfo& device) {
  const NarrowTiles tiles = tiles_of(p);
  NarrowSm90Config c{.block = {.ending = ending_of(p),
                               .tiles = {.tile_m = tiles.rows, .tile_n = tiles.columns, .stages = 16},
                               .store = {.by_lanes = 1},
                               .narrow = {.halves = tiles.splits > 1, .warpgroups_n = tiles.warpgroups_n, .walk = tiles.passes > 1}}};
  c.threads = narrow_threads(c.block);
  if (by_mma(c.block)) {
    c.block.tiles = with_mma_stages(c.block.tiles, p[Axis::k]);
    return with_room(c, device);
  }
  const bool one = tiles.rows == 128 || tiles.warpgroups_n > 1 || (tiles.passes > 1 && p[Axis::k] < kSeveralTilesK && p[Axis::m] > 16);
  c.block.tiles.chunks = one ? 1 : 2;
  return with_room(c, device);
}

/// Measured on an H200, ten shapes: up to 8 % faster than swap_ab_sm90 from one row on. Wider shares of up to 16 rows are not with wgmma:
/// (28672, 4096) 55.6 us and 56.0, (128256, 4096) 234 and 239.
static Rejection slower(const Problem& p, const DeviceInfo&) {
  if (const Rejection r = slower_m_major(p)) return r;
  constexpr i32 kMostOfFewest = 192;
  // Whatever m: else those widths whose pairs of tiles alone occupy would meet a ninth kernel
  if (!narrow_tiles(p, 1).occupy(p[Axis::n])) return {"n", p[Axis::n], "such that tiles are whole shares of {} multiprocessors", kSm90Sms};
  if (p[Axis::m] <= 16 && !takes_mma(p) && narrow_share(p[Axis::n]) > kMostOfFewest)
    return {"n", p[Axis::n], "at most {} with up to 16 rows", kMostOfFewest * kSm90Sms};
  return {};
}

static Rejection rejects(const Problem& p, const DeviceInfo& device) {
  if (const Rejection r = rejects_sm90_operands(p, device)) return r;
  if (major_of(p.tensor(&A::a)) != Major::k) return {"a", "M-major", "K-major"};
  if (major_of(p.tensor(&A::b)) != Major::k) return {"b", "N-major", "K-major"};
  if (p[Axis::m] > 128) return {"m", p[Axis::m], "at most {}", 128};
  if (p[Axis::k] % kDenseSm90TileK != 0) return {"k", p[Axis::k], "a multiple of {}", kDenseSm90TileK};
  if (p.batch_invariant && invariant_parts(p, device) > 1)
    return {"n and k", "those with parts of K", "one part of K with batch_invariant"};
  if (!takes_mma(p) && config_of(p, device).block.tiles.stages < 3) return {"n", p[Axis::n], "so few that three stages fit", 0};
  return {};
}

static DenseSm90Params params(const Call<DenseArgs>& c) {
  const BlockSm90& block = c.config<NarrowSm90Config>().block;
  const i32 rows = sm90_few_rows(c.problem[Axis::m], block.tiles.tile_m), chunks = block.tiles.chunks;
  return sm90_params(c, by_mma(block) ? sm90_few_rows_operand(c.args.a, rows, chunks) : sm90_operand(c.args.a, rows), block.tiles.tile_n, 1,
                     chunks);
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  const NarrowSm90Config config = config_of(p, device);
  const NarrowTiles tiles = tiles_of(p);
  Plan plan;
  const i64 blocks = tiles.blocks(p[Axis::n]), even = max_of(device.sms / 2 * 2, 2);  // next_tile() keeps to a block's rows
  plan.launch<params>(narrow, config,
                      {.x = config.block.narrow.walk ? min_of(even, blocks) : blocks,
                       .smem = block_bytes(config),
                       .cluster = u32(tiles.splits),
                       .pdl = p.pdl});
  return plan;
}

static const JoinVariant join("gemm.dense", 10, {"narrow_sm90", rejects, plan, slower});

}  // namespace quern::gemm
