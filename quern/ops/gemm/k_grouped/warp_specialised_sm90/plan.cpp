// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/grouped/plan.h"
#include "quern/op/variants.h"
#include "quern/ops/gemm/k_grouped/plan.h"

namespace quern::gemm {

using A = KGroupedArgs;

static const jit::Kernel<TilesSm90Config, KGroupedSm90Params> warp_specialised{"quern/ops/gemm/k_grouped/warp_specialised_sm90/kernel.cuh",
                                                                               "k_grouped_warp_specialised_sm90"};
static const jit::Kernel<ScaledSm90Config, KGroupedScaledSm90Params> scaled_warp_specialised{
    "quern/ops/gemm/k_grouped/warp_specialised_sm90/scaled_kernel.cuh", "k_grouped_scaled_warp_specialised_sm90"};

static bool is_scaled(const Problem& p) { return size_of(p.dtype(&A::a)) == 1; }

static Rejection rejects(const Problem& p, const DeviceInfo& device) {
  if (device.arch.number != 90) return {"arch", device.arch.number, "{}: wgmma", 90};
  const i32 alignment = min_of(p.tensor(&A::a).alignment, p.tensor(&A::b).alignment);
  if (alignment < 16) return {"alignment of a and b", alignment, "{} bytes for every row", 16};
  const bool k_major = !p.tensor(&A::a).transposed || !p.tensor(&A::b).transposed;
  if (const i64 unit = k_grouped_unit(p); k_major && unit % (16 / size_of(p.dtype(&A::a))) != 0)
    return {"alignment", unit, "a multiple of {} where a or b is K-major", 8};
  if (p.tensor(&A::out).alignment < 16) return {"alignment of out", p.tensor(&A::out).alignment, "{} bytes for every row", 16};
  if (p.tensor(&A::c).alignment < 16) return {"alignment of c", p.tensor(&A::c).alignment, "{} bytes for every row", 16};
  if (p[Axis::n] % 8 != 0) return {"n", p[Axis::n], "a multiple of {}", 8};
  if (p[Axis::k] == 0) return {"k", 0, "a positive one", 0};
  for (const Axis axis : {Axis::m, Axis::n, Axis::k})
    if (p[axis] > 0x7fffff00) return {name(axis), p[axis], "below 2^31", 0};
  const i64 tiles_of_group = ceil_div<i64>(p[Axis::m], 128) * ceil_div<i64>(p[Axis::n], 128);
  if (tiles_of_group > 0x7fffff00 / max_of<i64>(p[Axis::groups], 1))
    return {"tiles of 128 x 128 of a group", tiles_of_group, "below 2^31 of all", 0};
  return {};
}

/// Tiles, ring and stores of the launch that multiplies.
static const BlockSm90& block_of_launch(const Call<A>& c) {
  return is_scaled(c.problem) ? c.config<ScaledSm90Config>().product.block : c.config<TilesSm90Config>().block;
}

static KGroupedSm90Params dense_params(const Call<A, KGroupedColumns>& c) {
  const A& a = c.args;
  return {.maps = c.region(c.choice.maps),
          .spans = c.region(c.choice.spans),
          .out = a.out.data,
          .out_stride = a.out.strides[1],
          .out_group = group_bytes(a.out),
          .c_group = a.c.present() ? group_bytes(a.c) : 0,
          .groups = i32(c.problem[Axis::groups]),
          .m = i32(c.problem[Axis::m]),
          .n = i32(c.problem[Axis::n]),
          .c = c_of_first(c),
          .results = dense_sm90_stores_boxes(block_of_launch(c)) ? c.device.make_tensor_map(sm90_results(a.out, block_of_launch(c)))
                                                                 : TensorMap{}};
}
static KGroupedScaledSm90Params scaled_params(const Call<A, KGroupedColumns>& c) {
  return {.gemm = dense_params(c),
          .scales_a = scales_of_first(c.args.scales_a, kScaleARow),
          .scales_b = scales_of_first(c.args.scales_b, kScaleARow)};
}

TensorMap k_grouped_map(const Call<A>& c, bool of_a, i32 rows) {
  const TensorView& v = of_a ? c.args.a : c.args.b;
  const TensorFacts& facts = of_a ? c.problem.tensor(&A::a) : c.problem.tensor(&A::b);
  return c.device.make_tensor_map(sm90_operand(v, rows, major_of(facts)));
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  const i64 m = p[Axis::m], n = p[Axis::n], groups = p[Axis::groups];
  // Results of 4 bytes
  const GroupedSizes sizes{m, groups, n, ceil_div(p[Axis::k], max_of<i64>(groups, 1)), groups, m};
  Plan plan;
  const auto grid = [&](const Sm90Tile& tile, i32 smem, i32 pdl) {
    return Grid{.x = max_of<i64>(1, min_of<i64>(device.sms, most_tiles(sizes, tile.m, tile.n))), .smem = smem, .pdl = pdl};
  };
  const Ending ending{is_scaled(p) ? DType::bf16 : p.dtype(&A::a), p.dtype(&A::out), p.tensor(&A::c).present, i32(Activation::none)};
  if (is_scaled(p)) {
    const Sm90Tile& tile = least_time(kColumnScaledSm90Tiles, sizes, 4 * kSm90StoreCost);
    const BlockSm90 block{.ending = ending,
                          .tiles = {.tile_m = tile.m, .tile_n = tile.n, .stages = tile.stages},
                          .store = {.by_lanes = scaled_by_lanes(tile.n)}};
    const auto c =
        with_room(ScaledSm90Config{{.a_dtype = p.dtype(&A::a), .b_dtype = p.dtype(&A::b), .block = block, .column_scales = 2}}, device);
    const auto [columns, pdl] = add_k_grouped_spans(plan, p, device, tile.m, tile.n);
    plan.launch<scaled_params>(scaled_warp_specialised, c, grid(tile, block_bytes(c), pdl), columns);
  } else {
    const Sm90Tile& tile = least_time(kHalvedSm90Tiles, sizes, 2 * kSm90StoreCost);
    const TilesSm90 tiles{.tile_m = tile.m,
                          .tile_n = tile.n,
                          .stages = tile.stages,
                          .a_major = major_of(p.tensor(&A::a)),
                          .b_major = major_of(p.tensor(&A::b))};
    const auto c = with_room(TilesSm90Config{{.ending = ending, .tiles = tiles}}, device);
    const auto [columns, pdl] = add_k_grouped_spans(plan, p, device, tile.m, tile.n);
    plan.launch<dense_params>(warp_specialised, c, grid(tile, block_bytes(c), pdl), columns);
  }
  return plan;
}

static const JoinVariant join("gemm.k_grouped", 30, {"warp_specialised_sm90", rejects, plan});

}  // namespace quern::gemm
