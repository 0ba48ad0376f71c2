// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/grouped/sm90.h"

namespace quern::gemm {

static const jit::Kernel<TilesSm90Config, GroupedSm90Params> warp_specialised{"quern/ops/gemm/grouped/warp_specialised_sm90/kernel.cuh",
                                                                              "grouped_warp_specialised_sm90"};
static const jit::Kernel<ScaledSm90Config, GroupedScaledSm90Params> scaled_warp_specialised{
    "quern/ops/gemm/grouped/warp_specialised_sm90/scaled_kernel.cuh", "grouped_scaled_warp_specialised_sm90"};

template <class Args>
static Plan plan(const Problem& p, const DeviceInfo& device) {
  const GroupedSizes s = sizes_of<Args>(p);
  Plan plan;
  const auto [choice, pdl] = add_spans<Args>(plan, p, device);
  const auto grid = [&, pdl = pdl](const Sm90Tile& tile, i32 smem) {
    return Grid{.x = blocks_of(tile, most_tiles(s, rows_at_once(tile), tile.tail != 0 ? tile.tail : tile.n), device.sms),
                .smem = smem,
                .cluster = u32(pair_blocks(tile)),
                .pdl = pdl};
  };
  if (is_scaled<Args>(p)) {
    const bool wide = p.dtype(&Args::out) == DType::f32;
    const Sm90Tile& tile = wide ? least_time(kGroupedWideSm90Tiles, s, kSm90StoreCost) : least_time(kGroupedSm90Tiles, s, kSm90StoreCost);
    const BlockSm90 block{.ending = ending_of<Args>(p),
                          .tiles = {.tile_m = tile.m, .tile_n = tile.n, .stages = tile.stages, .pair = tile.pair, .tail = tile.tail},
                          .store = {.by_lanes = scaled_by_lanes(tile.n)}};
    const auto c = with_room(
        ScaledSm90Config{{.a_dtype = p.dtype(&Args::a), .b_dtype = p.dtype(&Args::b), .block = block, .column_scales = 0}}, device);
    plan.launch<scaled_params<Args, ScaledSm90Config>>(scaled_warp_specialised, c, grid(tile, block_bytes(c)), choice);
  } else {
    const Major b_major = major_of(p.tensor(&Args::b));
    const Sm90Tile& tile = least_time(kHalvedSm90Tiles, s, kSm90StoreCost, b_major);
    const auto c = with_room(TilesSm90Config{{.ending = ending_of<Args>(p),
                                              .tiles = {.tile_m = tile.m, .tile_n = tile.n, .stages = tile.stages, .b_major = b_major}}},
                             device);
    plan.launch<dense_params<Args, TilesSm90Config>>(warp_specialised, c, grid(tile, block_bytes(c)), choice);
  }
  return plan;
}

static const JoinVariant contiguous("gemm.grouped_contiguous", 30,
                                    {"warp_specialised_sm90", rejects_grouped_sm90<GroupedContiguousArgs>, plan<GroupedContiguousArgs>});
static const JoinVariant masked("gemm.grouped_masked", 30,
                                {"warp_specialised_sm90", rejects_grouped_sm90<GroupedMaskedArgs>, plan<GroupedMaskedArgs>});

}  // namespace quern::gemm
