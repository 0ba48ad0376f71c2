// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/scaled/sm90.h"

namespace quern::gemm {

using A = ScaledArgs;

static const jit::Kernel<ScaledSm90Config, ScaledSm90Params> warp_specialised{"quern/ops/gemm/scaled/warp_specialised_sm90/kernel.cuh",
                                                                              "scaled_warp_specialised_sm90"};

static Rejection slower(const Problem& p, const DeviceInfo&) {
  if (takes_few_rows(p)) return {"m", p[Axis::m], "more tiles of 128 x 128 than half the multiprocessors", 0};
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
  // The last of several tiles of 256 rows begins earlier, and what wgmma reads behind it are 128 rows of b's at most: rows_earlier_of_tile()
  const i64 last = (p[Axis::m] - 1) % 256 + 1;
  const bool tall = last >= 128 && size_of(p.dtype(&A::out)) == 2 && !p.tensor(&A::c).present;
  // Of no more columns, whose few rows have four kernels, pairs would be the ninth for scales of each stage: they gain 1 % at most. Scales of all of K follow the same rule
  const bool pairs = p[Axis::n] > 4096;
  const auto tiles = [&](const Sm90Tile& t) { return ceil_div<i64>(p[Axis::m], rows_at_once(t)) * ceil_div<i64>(p[Axis::n], t.n); };
  const auto best_of = [&](const auto& table) -> const Sm90Tile& {
    return least_time(table, p[Axis::k], kSm90StoreCost, [&](const Sm90Tile& t) -> i64 {
      const bool left_out = (t.m > 128 && !tall) || (t.pair && !pairs);
      return left_out ? 0 : columns_in_rounds(t, tiles(t));
    });
  };
  const i32 scales = column_scales(p);
  const Sm90Tile& tile = scales == 0 ? best_of(kScaledSm90Tiles) : scales == 1 ? best_of(kScaledOnceSm90Tiles) : best_of(kColumnScaledSm90Tiles);
  const BlockSm90 block{.ending = ending_of(p), .tiles = {.tile_m = tile.m, .tile_n = tile.n, .stages = tile.stages, .pair = tile.pair}, .store = {.by_lanes = scaled_by_lanes(tile.n)}};
  const auto config = with_room(ScaledSm90Config{{.a_dtype = p.dtype(&A::a), .b_dtype = p.dtype(&A::b), .block = block, .column_scales = scales}}, device);
  Plan plan;
  plan.launch<params>(warp_specialised, config, {.x = blocks_of(tile, tiles(tile), device.sms), .smem = block_bytes(config), .cluster = u32(pair_blocks(tile)), .pdl = p.pdl});
  return plan;
}

static const JoinVariant join("gemm.scaled", 30, {"warp_specialised_sm90", rejects_scaled_sm90_operands, plan, slower});

}  // namespace quern::gemm
