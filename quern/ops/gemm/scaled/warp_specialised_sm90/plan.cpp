// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/scaled/sm90.h"

namespace quern::gemm {

using A = ScaledArgs;

static const jit::Kernel<ScaledSm90Config, ScaledSm90Params> warp_specialised{"quern/ops/gemm/scaled/warp_specialised_sm90/kernel.cuh",
                                                                              "scaled_warp_specialised_sm90"};

static Rejection rejects(const Problem& p, const DeviceInfo& device) {
  if (const Rejection r = rejects_scaled_sm90_operands(p, device)) return r;
  if (p.candidate >= 0 && !takes_tile(p, kScaledSm90Tiles[p.candidate]))
    return {
        "tile", kScaledSm90Tiles[p.candidate].n,
        "another: with a scale of each row of b 128 x 128, of 256 rows where the last tile has 128 of its own, with results of 16 bits and no c",
        0};
  return {};
}

static Rejection slower(const Problem& p, const DeviceInfo& device) {
  if (takes_few_rows(p, device)) return {"m", p[Axis::m], "so many that tiles of swap_ab_sm90 take longer by estimate", 0};
  return {};
}

/// The L2 fetches 256 bytes for a miss, those of two stages: six shapes at m = 4096 0.6 % less, (32768, 512) 1.5 %.
static ScaledSm90Params params(const Call<ScaledArgs>& c) {
  const ScaledSm90& product = c.config<ScaledSm90Config>().product;
  const TilesSm90& tiles = product.block.tiles;
  ScaledSm90Params with = sm90_params(c, sm90_few_rows(c.problem[Axis::m], tiles.tile_m), tiles.tile_n / pair_blocks(tiles), 256);
  if (dense_sm90_stores_boxes(product.block)) with.gemm.results = c.device.make_tensor_map(sm90_results(c.args.out, product.block));
  if (has_tile_slots(product)) with.boxes = scale_boxes(c.args.scales_a, c.problem[Axis::m], c.problem[Axis::k], c.device);
  return with;
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  const i32 scales = column_scales(p);
  const Sm90Tile& tile = p.candidate < 0 ? scaled_many_rows_tile(p, Sm90Kind::tiles, device)
                         : scales == 1   ? kScaledOnceSm90Tiles[p.candidate]
                                         : kScaledSm90Tiles[p.candidate];
  const i64 tiles = ceil_div<i64>(p[Axis::m], rows_at_once(tile)) * ceil_div<i64>(p[Axis::n], tile.n);
  const BlockSm90 block{.ending = ending_of(p),
                        .tiles = {.tile_m = tile.m, .tile_n = tile.n, .stages = tile.stages, .pair = tile.pair},
                        .store = {.by_lanes = scaled_by_lanes(tile.n)}};
  const auto config =
      with_room(ScaledSm90Config{{.a_dtype = p.dtype(&A::a), .b_dtype = p.dtype(&A::b), .block = block, .column_scales = scales}}, device);
  Plan plan;
  plan.launch<params>(
      warp_specialised, config,
      {.x = blocks_of(tile, tiles, device.sms), .smem = block_bytes(config), .cluster = u32(pair_blocks(tile)), .pdl = p.pdl});
  return plan;
}

static const CandidateNames names(kScaledSm90Tiles);
static const JoinVariant join("gemm.scaled", 30, {"warp_specialised_sm90", rejects, plan, slower, names.all()});

}  // namespace quern::gemm
