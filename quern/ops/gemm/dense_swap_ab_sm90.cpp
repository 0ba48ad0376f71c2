// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/dense_call.h"
#include "quern/ops/gemm/dense_sm90.h"

namespace quern::gemm {

using A = DenseArgs;

static const jit::Kernel<DenseSwapConfig, DenseSm90Params> swap_ab{"quern/ops/gemm/dense_swap_ab_sm90.cuh", "dense_swap_ab_sm90"};

void fill_multiprocessor(DenseSwapConfig& c, const DeviceInfo& device, i32 (*bytes)(const DenseSwapConfig&)) {
  const i32 reserved = device.smem_sm - device.smem_block;  // by CUDA for every block
  for (c.stages = 16; c.min_blocks * (bytes(c) + reserved) > device.smem_sm;) --c.stages;
}
static void fill_multiprocessor(DenseSwapConfig& c, const DeviceInfo& device) {
  fill_multiprocessor(c, device, [](const DenseSwapConfig& config) { return i32(dense_swap_smem(config).bytes); });
}

DenseSwapConfig swapped_tile(i64 m, i64 n, const DeviceInfo& device) {
  DenseSwapConfig c{};
  c.chunks = 1;
  c.tile_m = m <= 16 ? 16 : m <= 32 ? 32 : m <= 64 ? 64 : 128;
  c.tile_n = n <= 64 * kSm90Sms ? 64 : n <= 192 * kSm90Sms && c.tile_m == 128 ? 192 : 128;
  c.min_blocks = c.tile_n == 128 ? 2 : 1;
  c.threads = 2 * c.tile_n + 32;
  fill_multiprocessor(c, device);
  return c;
}

i64 swapped_tiles(const DenseSwapConfig& c, i64 m, i64 n) { return ceil_div<i64>(m, c.tile_m) * ceil_div<i64>(n, c.tile_n); }

/// Time in ns, fitted on an H200: each multiprocessor has its share of memory's rate. One takes a ring full of a and b every 1400 ns,
/// beside what the ring holds at the start. Adding up splits takes 500 ns, and for each but the first 1250 ns for 8192 sums, growing
/// with the square.
static double estimate_ns(const DenseSwapConfig& c, i64 n, i64 row_bytes, i32 splits, i64 sms, const Rates& rates) {
  const double memory_an_sm = rates.memory / kSm90Sms;
  const double ring = double(c.stages) * dense_swap_smem(c).stage, bytes = double(c.tile_n + c.tile_m) * double(row_bytes) / splits;
  const double memory = double(n) * double(row_bytes) / (double(sms) * memory_an_sm), sums = c.tile_m * c.tile_n / 8192.0;
  return max_of((bytes / ring - 1) * 1400, memory) + (splits > 1 ? 500 + 1250 * (splits - 1) * sums * sums : 0);
}

i32 swapped_splits(const DenseSwapConfig& c, i64 m, i64 n, i64 row_bytes, i64 sms, const Rates& rates) {
  i32 best = 1;
  double best_ns = 1e300;
  for (i32 splits = 1; splits == 1 || (splits <= i32(kDenseSwapMaxSplits) && swapped_tiles(c, m, n) * splits <= sms); ++splits) {
    const double ns = estimate_ns(c, n, row_bytes, splits, sms, rates);
    if (ns < best_ns) best = splits, best_ns = ns;
  }
  return best;
}

/// Parts of K without batch_invariant. Of tiles of up to 64 rows and from 2048 columns on two at least where they have a multiprocessor each: with pdl, blocks of fewer come to lie beside each other on what the
/// kernels before leave free, and share a GPC's way to the L2: 41 us for (4096, 14336) in a decoder layer, 27 of two parts. Alone two are 3 % slower to 3 % faster.
static i32 fast_parts(const DenseSwapConfig& c, i64 m, i64 n, i64 k, const DeviceInfo& device) {
  const i64 sms = device.sms;
  const i32 parts = swapped_splits(c, m, n, 2 * k, sms, device.rates);
  return parts == 1 && c.tile_m <= 64 && k >= 2048 && 2 * swapped_tiles(c, m, n) <= sms ? 2 : parts;
}

/// With stages of two chunks where these are the better ones, on an H200 2 to 7 % faster: where rows of b are whole chunks and three stages fit. Of 128 rows of a
/// they are 48 KB, of which the first takes long: from 7168 columns a part on ((6144, 4096): 17.5 us and 16.5; (7168, 16384): 65.3 and 69.1).
static DenseSwapConfig with_chunks(const DenseSwapConfig& config, const Problem& p, const DeviceInfo& device) {
  const i64 n = p[Axis::n], k = p[Axis::k];
  if (config.b_major != Major::k || k % kDenseSm90TileK != 0) return config;
  if (config.tile_m == 128 && k / swapped_splits(swapped_tile(128, n, device), 128, n, 2 * k, kSm90Sms, device.rates) < 7168) return config;
  DenseSwapConfig two = config;
  two.chunks = 2;
  fill_multiprocessor(two, device);
  return two.stages < 3 ? config : two;
}

/// Rows of a that each of the tiles above each other has: all of them, or as even a share as whole eights make. What the L2 sends is the time of few tiles: 160 rows in tiles of 80 and of 128 (2112, 7168).
static i32 swapped_rows(i64 m, const DenseSwapConfig& c) {
  const i64 high = ceil_div<i64>(m, c.tile_m);
  if (c.a_major != Major::k) return c.tile_m;
  return i32(high == 1 ? m : round_up<i64>(ceil_div(m, high), 8));
}

/// Parts of K, each summed by one block of a cluster.
struct Parts {
  i32 count;
};

static DenseSm90Params params(const Call<DenseArgs, Parts>& c) {
  const auto& config = c.config<DenseSwapConfig>();
  const i32 rows = swapped_rows(c.problem[Axis::m], config);
  DenseSm90Params params = sm90_params(c, sm90_operand(c.args.a, rows, config.a_major), config.tile_n, c.choice.count, config.chunks);
  params.rows = rows;
  return params;
}

i32 invariant_parts(const Problem& p, const DeviceInfo& device) {
  return swapped_splits(swapped_tile(64, p[Axis::n], device), 64, p[Axis::n], 2 * p[Axis::k], kSm90Sms, device.rates);
}

Rejection slower_swap_ab_sm90(const Problem& p, const DeviceInfo&) {
  if (const Rejection r = slower_m_major(p)) return r;
  if (!takes_swapped(p)) return {"m", p[Axis::m], "at most {}, or so few columns that tiles of 128 x 64 have a multiprocessor each", 128};
  return {};
}

/// Tiles, each of so many blocks of a cluster.
struct SwappedTiles {
  DenseSwapConfig config;
  i32 splits;
};

/// Time in ns of more than 128 rows, without the start and the end: a multiprocessor takes 143 bytes a ns and the L2 sends 10.5 KB. Where K is split the two blocks of a TPC share no rows of b: 75 bytes,
/// 8.7 KB (an H100). Adding up splits as in estimate_ns().
static double estimate_many_ns(const DenseSwapConfig& c, i64 m, i64 n, i64 k, i32 splits) {
  const double rows = swapped_rows(m, c), row_bytes = 2 * double(k) / splits, blocks = double(swapped_tiles(c, m, n) * splits), sums = c.tile_m * c.tile_n / 8192.0;
  if (splits == 1) return max_of((rows + c.tile_n) * row_bytes / 143, blocks * (rows + c.tile_n / 2) * row_bytes / 10500);
  return max_of((rows + c.tile_n) * row_bytes / 75, blocks * (rows + c.tile_n) * row_bytes / 8700) + 500 + 1250 * (splits - 1) * sums * sums;
}

/// Of more than 128 rows tiles of 64 or 128, whose parts of K are one, two or four blocks: clusters of three take four multiprocessors' room ((1280, 5120), m = 136, in 40 of them 18 us).
static SwappedTiles tiles_of_many(const Problem& p, const DeviceInfo& device) {
  const i64 m = p[Axis::m], n = p[Axis::n], k = p[Axis::k];
  SwappedTiles best{};
  double best_ns = 1e300;
  for (DenseSwapConfig c : {swapped_tile(128, n, device), swapped_tile(64, n, device)}) {
    c.a_major = major_of(p.tensor(&A::a));
    for (i32 splits = p.batch_invariant ? invariant_parts(p, device) : 1; splits <= i32(kDenseSwapMaxSplits); splits *= 2) {
      const bool fits = swapped_tiles(c, m, n) * splits <= kSm90Sms, first = best.splits == 0;  // asked for by name, or parts of batch_invariant, may be more
      if (!fits && !first) break;
      if (const double ns = estimate_many_ns(c, m, n, k, splits); ns < best_ns) best_ns = ns, best = {c, splits};
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
  const DenseSwapConfig half = swapped_tile(64, n, device);
  const i32 parts = p.batch_invariant ? invariant_parts(p, device) : 1;
  const DenseSwapConfig c = m > 64 && swapped_tiles(half, m, n) * parts <= kSm90Sms ? half : swapped_tile(m, n, device);
  return {c, p.batch_invariant ? parts : fast_parts(c, m, n, p[Axis::k], device)};
}

Plan plan_swap_ab_sm90(const Problem& p, const DeviceInfo& device) {
  auto [config, splits] = tiles_of(p, device);
  config.dtype = p.dtype(&A::a);
  config.out_dtype = p.dtype(&A::out);
  config.has_c = p.tensor(&A::c).present;
  config.activation = i32(p.attr(&A::activation));
  config.a_major = major_of(p.tensor(&A::a));
  config.b_major = major_of(p.tensor(&A::b));
  config = with_chunks(config, p, device);
  Plan plan;
  plan.launch<params>(swap_ab, config,
                      {.x = swapped_tiles(config, p[Axis::m], p[Axis::n]) * splits, .smem = dense_swap_smem(config).bytes, .cluster = u32(splits), .pdl = p.pdl}, Parts{splits});
  return plan;
}

}  // namespace quern::gemm
