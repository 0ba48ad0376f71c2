// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/grouped/plan.h"

namespace quern::gemm {

static const jit::Kernel<TilesSm90Config, GroupedSm90Params> warp_specialised{"quern/ops/gemm/grouped/warp_specialised_sm90/kernel.cuh",
                                                                              "grouped_warp_specialised_sm90"};
static const jit::Kernel<ScaledSm90Config, GroupedScaledSm90Params> scaled_warp_specialised{
    "quern/ops/gemm/grouped/warp_specialised_sm90/scaled_kernel.cuh", "grouped_scaled_warp_specialised_sm90"};

static const jit::Kernel<SwapAbConfig, GroupedSm90Params> swap_ab{"quern/ops/gemm/grouped/swap_ab_sm90/kernel.cuh", "grouped_swap_ab_sm90"};
static const jit::Kernel<ScaledSwapAbConfig, GroupedScaledSm90Params> scaled_swap_ab{"quern/ops/gemm/grouped/swap_ab_sm90/scaled_kernel.cuh",
                                                                                  "grouped_scaled_swap_ab_sm90"};

/// Rows from a matrix of an operand to the next, where they follow one another and one map has the rows of all: what a box reads behind the last row of a matrix are the next one's then, whose results are not
/// stored. TMA takes 1.6 % less of contiguous 8 bits, 128 x 192 (cycles, H200) with two dimensions than with three. 0: they do not.
static i32 rows_to_next(const TensorView& v) {
  const i64 rows = v.shape[v.rank - 2], matrices = v.rank == 3 ? v.shape[0] : 1;
  if (matrices == 1) return i32(rows);
  const auto [group, row] = strides_of(v);
  return row > 0 && group == rows * row && rows * matrices <= 0x7fffff00 ? i32(rows) : 0;
}
/// Map of an operand of matrices (rank 3) or of one matrix: boxes of `box` rows, 128 bytes of each. The L2 fetches `fetched` bytes for a miss.
static TensorMapSpec operand(const TensorView& v, i32 box, i32 fetched) {
  const i64 element = size_of(v.dtype), rows = v.shape[v.rank - 2], k = v.shape[v.rank - 1], matrices = v.rank == 3 ? v.shape[0] : 1;
  // Of a dimension of one the stride is not looked at, and may be anything
  const i64 row_bytes = rows > 1 ? strides_of(v).row * element : round_up<i64>(k * element, 16);
  TensorMapSpec map{.dtype = v.dtype, .rank = 2, .base = v.data, .shape = {k, i64(rows_to_next(v)) * (matrices - 1) + rows}, .stride_bytes = {row_bytes}, .box = {i32(128 / element), box},
                    .swizzle = Swizzle::b128, .fetched = fetched};
  if (rows_to_next(v) == 0) map.rank = 3, map.shape[1] = rows, map.shape[2] = matrices, map.stride_bytes[1] = strides_of(v).group * element, map.box[2] = 1;
  return map;
}

/// Nothing follows the sums.
template <class Args>
static Ending ending_of(const Problem& p) {
  return {is_scaled<Args>(p) ? DType::bf16 : p.dtype(&Args::a), p.dtype(&Args::out), 0, i32(Activation::none)};
}

template <class Args>
Rejection rejects_grouped_sm90(const Problem& p, const DeviceInfo& device) {
  if (device.arch.number != 90) return {"arch", device.arch.number, "{}: wgmma", 90};
  const i32 alignment = min_of(p.tensor(&Args::a).alignment, p.tensor(&Args::b).alignment);
  if (alignment < 16) return {"alignment of a and b", alignment, "{} bytes for every row", 16};
  if (p.tensor(&Args::out).alignment < 16) return {"alignment of out", p.tensor(&Args::out).alignment, "{} bytes for every row", 16};
  if (p[Axis::n] % 8 != 0) return {"n", p[Axis::n], "a multiple of {}", 8};
  for (const Axis axis : {Axis::k, Axis::groups})
    if (p[axis] == 0) return {name(axis), 0, "a positive one", 0};
  for (const Axis axis : {Axis::n, Axis::k})
    if (p[axis] > 0x7fffff00) return {name(axis), p[axis], "below 2^31", 0};
  // A tile's last row is counted in 31 bits
  if (const i64 rows = sizes_of<Args>(p).rows; rows > 0x7fffff00) return {"rows", rows, "at most {}", 0x7fffff00};
  if (const i64 tiles = most_tiles(sizes_of<Args>(p), 16, 64); tiles > 0x7fffff00) return {"tiles of 16 x 64", tiles, "below 2^31", 0};
  return {};
}

template <class Args>
static GroupedSm90Params params(const Call<Args, GroupedChoice>& c, i32 box_a, i32 box_b, i32 fetched) {
  const Args& a = c.args;
  return {.a = c.device.make_tensor_map(operand(a.a, box_a, fetched)),
          .b = c.device.make_tensor_map(operand(a.b, box_b, fetched)),
          .rows = rows_of(c),
          .out = a.out.data,
          .out_stride = strides_of(a.out).row,
          .out_group = strides_of(a.out).group,
          .n = i32(c.problem[Axis::n]),
          .k = i32(c.problem[Axis::k]),
          .a_rows = rows_to_next(a.a),
          .b_rows = rows_to_next(a.b)};
}
static const BlockSm90& block_of(const TilesSm90Config& c) { return c.block; }
static const BlockSm90& block_of(const ScaledSm90Config& c) { return c.product.block; }
static const SwapAbBlock& block_of(const SwapAbConfig& c) { return c.block; }
static const SwapAbBlock& block_of(const ScaledSwapAbConfig& c) { return c.product.block; }
template <class Args, class Config>
static GroupedSm90Params dense_params(const Call<Args, GroupedChoice>& c) {
  const auto& block = block_of(c.template config<Config>());
  constexpr bool kSwapped = std::is_same_v<decltype(block), const SwapAbBlock&>;
  i32 box_b = block.tiles.tile_n;
  if constexpr (!kSwapped) box_b /= pair_blocks(block.tiles);
  // 8 bits, masked, 1 group of 866 rows and 4 of 267: 1.5 and 1 % less with 256; contiguous the same
  const i32 fetched = std::is_same_v<Config, ScaledSm90Config> ? 256 : 128;
  GroupedSm90Params with = params(c, block.tiles.tile_m, box_b, fetched);
  if constexpr (!kSwapped) {
    if (block.tiles.tail != 0) with.b_tail = c.device.make_tensor_map(operand(c.args.b, block.tiles.tail, fetched));
    if (dense_sm90_stores_boxes(block)) with.results = c.device.make_tensor_map(sm90_results(c.args.out, block));
  }
  return with;
}
template <class Args, class Config>
static GroupedScaledSm90Params scaled_params(const Call<Args, GroupedChoice>& c) {
  GroupedScaledSm90Params with{.gemm = dense_params<Args, Config>(c),
                               .scales_a = scales_of_first(c.args.scales_a, kScaleARow),
                               .scales_b = scales_of_first(c.args.scales_b, kScaleABlock),
                               .scales_a_group = strides_of(c.args.scales_a).group,
                               .scales_b_group = strides_of(c.args.scales_b).group};
  if constexpr (std::is_same_v<Config, ScaledSm90Config>) {
    const ScaledSm90& product = c.template config<Config>().product;
    if (has_tile_slots(product)) with.boxes = scale_boxes(c.args.scales_a, sizes_of<Args>(c.problem).rows, c.problem[Axis::k], c.device);
  }
  return with;
}

// ---- few rows a group ----

/// Rows of a group up to which its b takes longer to come than tiles of so many rows take to be multiplied. In scaled kernels a thread has
/// two sets of sums, and two blocks share the registers.
template <class Args>
static i64 most_swapped_rows(const Problem& p) {
  return is_scaled<Args>(p) ? 32 : 64;
}

template <class Args>
Rejection slower_grouped_swap_ab_sm90(const Problem& p, const DeviceInfo&) {
  const i64 rows = sizes_of<Args>(p).expected;
  if (rows > most_swapped_rows<Args>(p)) return {"rows of a group", rows, "at most {}", most_swapped_rows<Args>(p)};
  return {};
}

template <class Args>
Plan plan_grouped_swap_ab_sm90(const Problem& p, const DeviceInfo& device) {
  const GroupedSizes s = sizes_of<Args>(p);
  Plan plan;
  const auto [choice, pdl] = add_spans<Args>(plan, p, device);
  // b's of all groups stream side by side, so the tile is that for one as wide as all of them
  const i64 rows = min_of(s.expected, most_swapped_rows<Args>(p)), columns = s.groups * s.n;
  const auto grid = [&, pdl = pdl](const SwapAbShape& shape, i32 smem) {
    return Grid{.x = max_of<i64>(1, min_of<i64>(i64(shape.min_blocks) * device.sms, most_tiles(s, shape.tiles.tile_m, shape.tiles.tile_n))), .smem = smem, .pdl = pdl};
  };
  const auto ending = ending_of<Args>(p);
  if (is_scaled<Args>(p)) {
    const SwapAbShape shape = scaled_swapped_tile(rows, columns, device);
    const ScaledSwapAb product{p.dtype(&Args::a), p.dtype(&Args::b), {ending, shape.tiles}, 0};
    plan.launch<scaled_params<Args, ScaledSwapAbConfig>>(scaled_swap_ab, {product, swap_ab_threads(shape.tiles, 1), shape.min_blocks}, grid(shape, scaled_swap_bytes(shape.tiles)), choice);
  } else {
    const SwapAbShape shape = swapped_tile(rows, columns, device);
    plan.launch<dense_params<Args, SwapAbConfig>>(swap_ab, {{ending, shape.tiles}, swap_ab_threads(shape.tiles), shape.min_blocks}, grid(shape, dense_swap_smem(shape.tiles).bytes), choice);
  }
  return plan;
}

// ---- many rows a group ----

template <class Args>
Plan plan_grouped_sm90(const Problem& p, const DeviceInfo& device) {
  const GroupedSizes s = sizes_of<Args>(p);
  Plan plan;
  const auto [choice, pdl] = add_spans<Args>(plan, p, device);
  const auto grid = [&, pdl = pdl](const Sm90Tile& tile, i32 smem) {
    return Grid{.x = blocks_of(tile, most_tiles(s, rows_at_once(tile), tile.tail != 0 ? tile.tail : tile.n), device.sms), .smem = smem, .cluster = u32(pair_blocks(tile)), .pdl = pdl};
  };
  if (is_scaled<Args>(p)) {
    const bool wide = p.dtype(&Args::out) == DType::f32;
    const Sm90Tile& tile = wide ? least_time(kGroupedWideSm90Tiles, s, kSm90StoreCost) : least_time(kGroupedSm90Tiles, s, kSm90StoreCost);
    const BlockSm90 block{.ending = ending_of<Args>(p), .tiles = {.tile_m = tile.m, .tile_n = tile.n, .stages = tile.stages, .pair = tile.pair, .tail = tile.tail}, .store = {.by_lanes = scaled_by_lanes(tile.n)}};
    const auto c = with_room(ScaledSm90Config{{.a_dtype = p.dtype(&Args::a), .b_dtype = p.dtype(&Args::b), .block = block, .column_scales = 0}}, device);
    plan.launch<scaled_params<Args, ScaledSm90Config>>(scaled_warp_specialised, c, grid(tile, block_bytes(c)), choice);
  } else {
    const Sm90Tile& tile = least_time(kHalvedSm90Tiles, s, kSm90StoreCost);
    const auto c = with_room(TilesSm90Config{{.ending = ending_of<Args>(p), .tiles = {.tile_m = tile.m, .tile_n = tile.n, .stages = tile.stages}}}, device);
    plan.launch<dense_params<Args, TilesSm90Config>>(warp_specialised, c, grid(tile, block_bytes(c)), choice);
  }
  return plan;
}

template Rejection slower_grouped_swap_ab_sm90<GroupedContiguousArgs>(const Problem&, const DeviceInfo&);
template Rejection slower_grouped_swap_ab_sm90<GroupedMaskedArgs>(const Problem&, const DeviceInfo&);
template Plan plan_grouped_swap_ab_sm90<GroupedContiguousArgs>(const Problem&, const DeviceInfo&);
template Plan plan_grouped_swap_ab_sm90<GroupedMaskedArgs>(const Problem&, const DeviceInfo&);
template Rejection rejects_grouped_sm90<GroupedContiguousArgs>(const Problem&, const DeviceInfo&);
template Rejection rejects_grouped_sm90<GroupedMaskedArgs>(const Problem&, const DeviceInfo&);
template Plan plan_grouped_sm90<GroupedContiguousArgs>(const Problem&, const DeviceInfo&);
template Plan plan_grouped_sm90<GroupedMaskedArgs>(const Problem&, const DeviceInfo&);

}  // namespace quern::gemm
