// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/dense/call.h"
#include "quern/ops/gemm/dense/sm90.h"

namespace quern::gemm {

using A = DenseArgs;

static const jit::Kernel<SwapAbConfig, DenseSm90Params> swap_ab{"quern/ops/gemm/dense/swap_ab_sm90/kernel.cuh", "dense_swap_ab_sm90"};

/// Parts of K without batch_invariant. Of tiles of up to 64 rows and from 2048 columns on two at least where they have a multiprocessor
/// each: with pdl, blocks of fewer come to lie beside each other on what the kernels before leave free, and share a GPC's way to the L2: 41
/// us for (4096, 14336) in a decoder layer, 27 of two parts. Alone two are 3 % slower to 3 % faster.
static i32 fast_parts(const SwapAbSm90& c, i64 m, i64 n, i64 k, const DeviceInfo& device) {
  const i64 sms = device.sms;
  const i32 parts = swapped_splits(c, m, n, 2 * k, sms, device.rates);
  return parts == 1 && c.tile_m <= 64 && k >= 2048 && 2 * swapped_tiles(c, m, n) <= sms ? 2 : parts;
}

/// Gives the tiles stages of two chunks where these are faster, on an H200 by 2 to 7 %: where rows of b are whole chunks and three stages
/// fit. With 128 rows of a such a stage is 48 KB, and the first one takes long to come. So there a part of K must have 7168 columns or more
/// ((6144, 4096): two chunks 17.5 us, one 16.5; (7168, 16384): 65.3 and 69.1).
static SwapAbShape with_chunks(const SwapAbShape& shape, const Problem& p, const DeviceInfo& device) {
  const i64 n = p[Axis::n], k = p[Axis::k];
  if (shape.tiles.b_major != Major::k || k % kDenseSm90TileK != 0 || shape.tiles.tile_m > 128) return shape;
  if (shape.tiles.tile_m == 128 && k / swapped_splits(swapped_tile(128, n, device).tiles, 128, n, 2 * k, kSm90Sms, device.rates) < 7168)
    return shape;
  SwapAbShape two = shape;
  two.tiles.chunks = 2;
  fill_multiprocessor(two, device);
  return two.tiles.stages < 3 ? shape : two;
}

/// Parts of K, each summed by one block of a cluster.
struct Parts {
  i32 count;
};

static DenseSm90Params params(const Call<DenseArgs, Parts>& c) {
  const SwapAbSm90& tiles = c.config<SwapAbConfig>().block.tiles;
  const i32 rows = swapped_rows(dense_product_of(c.problem), tiles.tile_m);
  DenseSm90Params params = sm90_params(c, sm90_operand(c.args.a, rows, tiles.a_major), tiles.tile_n, c.choice.count, tiles.chunks);
  params.rows = rows;
  return params;
}

i32 invariant_parts(const Problem& p, const DeviceInfo& device) {
  return swapped_splits(swapped_tile(64, p[Axis::n], device).tiles, 64, p[Axis::n], 2 * p[Axis::k], kSm90Sms, device.rates);
}

static Rejection slower(const Problem& p, const DeviceInfo& device) {
  if (const Rejection r = slower_m_major(p)) return r;
  if (!takes_swapped(p, device)) return {"m", p[Axis::m], "at most {}, or such that other tiles take longer by estimate", 128};
  return {};
}

/// Tiles, each of so many blocks of a cluster.
struct SwappedTiles {
  SwapAbShape shape;
  i32 splits;
};

/// The candidate of that index (CandidateNames).
static const Sm90Tile& tile_of(i32 candidate) { return kDenseSwappedTiles[candidate / kManyRowsParts]; }
static i32 parts_of(i32 candidate) { return 1 << candidate % kManyRowsParts; }

static SwappedTiles tiles_of(const Sm90Tile& tile, i32 parts, const DeviceInfo& device) {
  SwapAbShape shape{.tiles = {.tile_m = tile.m, .tile_n = tile.n, .stages = tile.stages}, .min_blocks = tile.blocks};
  fill_multiprocessor(shape, device);
  return {shape, parts};
}

/// By the variant's name, where another kernel makes so many rows, the best of this one's.
static SwappedTiles tiles_of_many(const Problem& p, const DeviceInfo& device) {
  const ManyRowsChoice choice = choose_dense_many_rows(p, device);
  const Sm90Kernel& kernel = dense_many_rows_kernels()[size_t(choice.kernel)];
  if (kernel.kind == Sm90Kind::swapped) return tiles_of(*kernel.tile, choice.parts, device);
  const i32 parts = p.batch_invariant ? invariant_parts(p, device) : 1;
  const Sm90Tile* best = nullptr;
  double least = 1e300;
  for (const Sm90Kernel& k : dense_many_rows_kernels())
    if (const double ns = k.kind == Sm90Kind::swapped ? dense_many_rows_ns(p, k, parts, device) : 1e300; ns < least)
      least = ns, best = k.tile;
  return tiles_of(*best, parts, device);
}

/// Of more than 64 rows tiles of 64 instead of 128 where both have one of kSm90Sms multiprocessors each: each reads two thirds as much, and
/// fewer parts are added up. m = 128: (4096, 7168) 17.6 us and 19.8, (4096, 4096) 12.1 and 13.7, (2112, 7168) 15.0 and 15.8.
static SwappedTiles tiles_of(const Problem& p, const DeviceInfo& device) {
  const i64 m = p[Axis::m], n = p[Axis::n];
  if (p.candidate >= 0) return tiles_of(tile_of(p.candidate), parts_of(p.candidate), device);
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
  plan.launch<params>(swap_ab, config,
                      {.x = swapped_tiles(tiles, p[Axis::m], p[Axis::n]) * splits,
                       .smem = dense_swap_smem(tiles).bytes,
                       .cluster = u32(splits),
                       .pdl = p.pdl},
                      Parts{splits});
  return plan;
}

/// A named candidate may be one that plan would not choose.
static Rejection rejects(const Problem& p, const DeviceInfo& device) {
  if (const Rejection r = rejects_sm90_operands(p, device)) return r;
  if (p.candidate < 0) return {};
  const i32 parts = parts_of(p.candidate);
  if (!takes_swapped_rows(p, tile_of(p.candidate))) return {"a", "M-major", "K-major with tiles that are no whole boxes"};
  if (p.batch_invariant && parts != invariant_parts(p, device))
    return {"parts of K", parts, "{} with batch_invariant", invariant_parts(p, device)};
  if (p[Axis::k] <= 128 * (parts - 1)) return {"k", p[Axis::k], "more than {} for so many parts", 128 * (parts - 1)};
  return {};
}

static const CandidateNames names(kDenseSwappedTiles, true);
static const JoinVariant join("gemm.dense", 20, {"swap_ab_sm90", rejects, plan, slower, names.all()});

}  // namespace quern::gemm
