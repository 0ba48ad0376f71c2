// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/scaled/sm90.h"

namespace quern::gemm {

using A = ScaledArgs;

static const jit::Kernel<ScaledSwapAbConfig, ScaledSm90Params> swap_ab{"quern/ops/gemm/scaled/swap_ab_sm90/kernel.cuh",
                                                                       "scaled_swap_ab_sm90"};

/// The candidate of that index (CandidateNames).
static const Sm90Tile& tile_of(i32 candidate) { return kScaledSwappedTiles[candidate / kManyRowsParts]; }
static i32 parts_of(i32 candidate) { return 1 << candidate % kManyRowsParts; }

static Rejection slower(const Problem& p, const DeviceInfo& device) {
  if (!takes_few_rows(p, device)) return {"m", p[Axis::m], "at most {}, or such that other tiles take longer by estimate", 128};
  return {};
}

/// A named candidate may be one that plan would not choose.
static Rejection rejects(const Problem& p, const DeviceInfo& device) {
  if (const Rejection r = rejects_scaled_sm90_operands(p, device)) return r;
  if (p.candidate < 0) return {};
  const i32 parts = parts_of(p.candidate);
  if (p.batch_invariant && parts > 1) return {"parts of K", parts, "{} with batch_invariant", 1};
  if (p[Axis::k] <= kScaledGroup * (parts - 1)) return {"k", p[Axis::k], "more than {} for so many parts", kScaledGroup * (parts - 1)};
  return {};
}

static ScaledSm90Params params(const Call<ScaledArgs>& c) {
  const SwapAbSm90& tiles = c.config<ScaledSwapAbConfig>().product.block.tiles;
  return sm90_params(
      c,
      c.problem[Axis::m] > 128 ? swapped_rows(scaled_product_of(c.problem), tiles.tile_m) : sm90_few_rows(c.problem[Axis::m], tiles.tile_m),
      tiles.tile_n);
}

/// Time in ns of the loop over K and of adding up its parts. Measured on an H200: a block takes 110 ns and 2.5 for each row of a for a
/// stage, two of one multiprocessor three quarters of it each. Memory gives 4.4 bytes/ps. Parts take 1100 ns, and 400 for each but the
/// first. (Of 128 rows a stage takes 350 since: of 1 to 4 parts the fastest is still what this chooses, at m = 16, 64, 128 and six shapes.)
static double estimate_ns(const SwapAbSm90& c, i64 tiles, i64 n, i64 k, i32 splits, i64 sms) {
  const double stage = 110 + 2.5 * c.tile_m, memory = double(n) * double(k) / 4400;
  const double in_turn = tiles * splits + splits <= sms ? 1 : 1.5;  // clusters leave some multiprocessors of a GPC without a block
  const double parts = splits > 1 ? 1100 + (splits - 1) * (400 + 4. * c.tile_m) : 0;
  return max_of(memory, in_turn * stage * double(ceil_div<i64>(ceil_div<i64>(k, kScaledGroup), splits))) + parts;
}

static i32 scaled_swapped_splits(const SwapAbShape& c, i64 tiles, i64 n, i64 k, i64 sms) {
  i32 best = 1;
  double best_ns = 1e300;
  for (i32 splits = 1; splits == 1 || (splits <= i32(kDenseSwapMaxSplits) && tiles * splits <= c.min_blocks * sms); ++splits) {
    const double ns = estimate_ns(c.tiles, tiles, n, k, splits, sms);
    if (ns < best_ns) best = splits, best_ns = ns;
  }
  return best;
}

static SwapAbShape shape_of(const Sm90Tile& tile, const DeviceInfo& device) {
  SwapAbShape shape{.tiles = {.tile_m = tile.m, .tile_n = tile.n, .stages = tile.stages}, .min_blocks = tile.blocks};
  fill_multiprocessor(shape, device, scaled_swap_bytes);
  return shape;
}
/// Tiles, and the parts of K.
struct SwappedTiles {
  SwapAbShape shape;
  i32 splits;
};
static SwappedTiles tiles_of(const Problem& p, const DeviceInfo& device) {
  const i64 m = p[Axis::m], n = p[Axis::n];
  if (p.candidate >= 0) return {shape_of(tile_of(p.candidate), device), parts_of(p.candidate)};
  if (m > 128) {
    const ManyRowsChoice choice = choose_scaled_many_rows(p, device);
    const Sm90Tile& tile = scaled_many_rows_tile(p, Sm90Kind::swapped, device);
    return {shape_of(tile, device), &tile == scaled_many_rows_kernels(column_scales(p))[size_t(choice.kernel)].tile ? choice.parts : 1};
  }
  const SwapAbShape shape = scaled_swapped_tile(min_of(m, most_swapped_rows(p)), n, device);
  return {shape, p.batch_invariant ? 1 : scaled_swapped_splits(shape, swapped_tiles(shape.tiles, m, n), n, p[Axis::k], device.sms)};
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  const auto [shape, splits] = tiles_of(p, device);
  const ScaledSwapAb product{p.dtype(&A::a), p.dtype(&A::b), {ending_of(p), shape.tiles}, column_scales(p) == 1};
  const i64 tiles = swapped_tiles(shape.tiles, p[Axis::m], p[Axis::n]);
  Plan plan;
  plan.launch<params>(swap_ab, {product, swap_ab_threads(shape.tiles, 1), shape.min_blocks},
                      {.x = tiles * splits, .smem = scaled_swap_bytes(shape.tiles), .cluster = u32(splits), .pdl = p.pdl});
  return plan;
}

static const CandidateNames names(kScaledSwappedTiles, true);
static const JoinVariant join("gemm.scaled", 20, {"swap_ab_sm90", rejects, plan, slower, names.all()});

}  // namespace quern::gemm
