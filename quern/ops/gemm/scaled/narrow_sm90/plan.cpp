// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/scaled/sm90.h"

namespace quern::gemm {

using A = ScaledArgs;

static const jit::Kernel<ScaledSm90Config, ScaledSm90Params> narrow{"quern/ops/gemm/scaled/narrow_sm90/kernel.cuh", "scaled_narrow_sm90"};

/// Pairs and one tile of 128 rows, m = 128: (7168, 2048) 7.6 us and 8.1, (6144, 4096) 9.6 and 11.0, (4096, 7168) 11.3 and 11.9 with K in
/// two; (8704, 4096) 14.5 and 13.9. K in two, m = 1, 16, 64: (3072, 7168) 8.2, 8.5, 8.7 us and 10.0, 9.5, 8.8, (4096, 7168) 9.8, 9.9, 10.3
/// and 10.5, 10.0, 9.9, (6144, 4096) 9.1, 9.2, 9.4 and 8.5, 8.6, 8.8; fewer columns of K were not measured. Of more than 192 columns there
/// are tiles of 256.
static NarrowTiles narrow_tiles(const Problem& p, i64 m) {
  const i32 most_split = p.batch_invariant ? 0 : p[Axis::k] < 4096 ? 16 : m <= 16 ? 32 : 24;
  NarrowTiles tiles = narrow_tiles(m, p[Axis::n], most_split, 64);
  if (tiles.rows == 64 && tiles.tiles_m == 1 && tiles.columns > 192) tiles.columns = max_of(tiles.columns, 256);
  return tiles;
}
/// Of a named candidate, or of more than 128 rows, one tile.
static NarrowTiles tiles_of(const Problem& p, const DeviceInfo& device) {
  if (p.candidate < 0 && p[Axis::m] <= 128) return narrow_tiles(p, p[Axis::m]);
  const Sm90Tile& tile = p.candidate >= 0 ? kScaledNarrowTiles[p.candidate] : scaled_many_rows_tile(p, Sm90Kind::narrow, device);
  return {tile.m, tile.n, i32(ceil_div<i64>(p[Axis::m], tile.m)), 1};
}
/// Two warpgroups, m = 1, 16, 64: (24576, 1536) 12.2, 12.2, 12.4 us and 12.6, 12.7, 12.8 of one; but pairs of tiles, m = 128: (7168,
/// 2048) 8.6 and 7.7.
static i32 warpgroups_n(const NarrowTiles& tiles) {
  return tiles.rows == 64 && tiles.tiles_m != 2 && tiles.columns > 96 && tiles.columns % 16 == 0 ? 2 : 1;
}

static Rejection rejects(const Problem& p, const DeviceInfo& device) {
  if (const Rejection r = rejects_scaled_sm90_operands(p, device)) return r;
  const NarrowTiles tiles = tiles_of(p, device);
  // The widest tiles whose sums and scales leave the registers of a thread without spills
  if (const i32 most = tiles.rows == 128 ? 96 : 256; tiles.columns > most) return {"n", p[Axis::n], "at most {}", most * kSm90Sms};
  return {};
}

/// Measured on an H200, six shapes: 4 to 20 % faster than the other variants from 33 rows on, of fewer the same to 15 %.
static Rejection slower(const Problem& p, const DeviceInfo& device) {
  if (p[Axis::m] > 128) {
    const bool chosen =
        scaled_many_rows_kernels(column_scales(p))[size_t(choose_scaled_many_rows(p, device).kernel)].kind == Sm90Kind::narrow;
    return chosen ? Rejection{} : Rejection{"m", p[Axis::m], "at most {}, or such that other tiles take longer by estimate", 128};
  }
  if (!narrow_tiles(p, 1).occupy(p[Axis::n])) return {"n", p[Axis::n], "such that tiles are whole shares of {} multiprocessors", kSm90Sms};
  // (32768, 512): m = 64 7.6 us and 8.8 of warp_specialised, m = 1 the 7.6 and m = 16 7.7 instead of 7.5 of swap_ab
  if (narrow_tiles(p, p[Axis::m]).columns > 192 && p[Axis::m] <= most_swapped_rows(p))
    return {"m", p[Axis::m], "more than {} beside so wide tiles", most_swapped_rows(p)};
  return {};
}

static ScaledSm90Params params(const Call<ScaledArgs>& c) {
  const TilesSm90& tiles = c.config<ScaledSm90Config>().product.block.tiles;
  return sm90_params(c, sm90_few_rows(c.problem[Axis::m], tiles.tile_m), tiles.tile_n);
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  const NarrowTiles tiles = tiles_of(p, device);
  const BlockSm90 block{.ending = ending_of(p),
                        .tiles = {.tile_m = tiles.rows, .tile_n = tiles.columns, .stages = 16},
                        .store = {.by_lanes = 1},
                        .narrow = {.halves = tiles.splits > 1, .warpgroups_n = warpgroups_n(tiles), .walk = p[Axis::m] > 128 ? 2 : 0}};
  ScaledSm90Config config{
      {.a_dtype = p.dtype(&A::a), .b_dtype = p.dtype(&A::b), .block = block, .column_scales = column_scales(p), .narrow = 1},
      narrow_threads(block, 1)};
  config = with_room(config, device);
  Plan plan;
  plan.launch<params>(narrow, config,
                      {.x = tiles.blocks(p[Axis::n]), .smem = block_bytes(config), .cluster = u32(tiles.splits), .pdl = p.pdl});
  return plan;
}

static const CandidateNames names(kScaledNarrowTiles);
static const JoinVariant join("gemm.scaled", 10, {"narrow_sm90", rejects, plan, slower, names.all()});

}  // namespace quern::gemm
