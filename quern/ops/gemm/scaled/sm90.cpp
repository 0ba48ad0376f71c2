// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/scaled/sm90.h"

namespace quern::gemm {

using A = ScaledArgs;

static const jit::Kernel<ScaledSm90Config, ScaledSm90Params> warp_specialised{"quern/ops/gemm/scaled/warp_specialised_sm90/kernel.cuh",
                                                                              "scaled_warp_specialised_sm90"};
static const jit::Kernel<ScaledSm90Config, ScaledSm90Params> narrow{"quern/ops/gemm/scaled/narrow_sm90/kernel.cuh", "scaled_narrow_sm90"};
static const jit::Kernel<ScaledSwapAbConfig, ScaledSm90Params> swap_ab{"quern/ops/gemm/scaled/swap_ab_sm90/kernel.cuh", "scaled_swap_ab_sm90"};

constexpr i32 kTileM = 128;

/// A bias and c that are not f32 are bf16.
static Ending ending_of(const Problem& p) { return {DType::bf16, p.dtype(&A::out), p.tensor(&A::c).present, i32(Activation::none)}; }

Rejection rejects_scaled_sm90_operands(const Problem& p, const DeviceInfo& device) {
  if (device.arch.number != 90) return {"arch", device.arch.number, "{}: wgmma", 90};
  const i32 vector = min_of(p.vector(&A::a), p.vector(&A::b));
  if (vector < 16) return {"alignment of a and b", vector, "{} bytes for every row", 16};
  if (p.tensor(&A::out).alignment < 16) return {"alignment of out", p.tensor(&A::out).alignment, "{} bytes for every row", 16};
  if (p.tensor(&A::c).alignment < 16) return {"alignment of c", p.tensor(&A::c).alignment, "{} bytes for every row", 16};
  if (p[Axis::n] % 8 != 0) return {"n", p[Axis::n], "a multiple of {}", 8};
  if (p[Axis::k] == 0) return {"k", 0, "a positive one", 0};
  for (const Axis axis : {Axis::m, Axis::n, Axis::k})
    if (p[axis] > 0x7fffff00) return {name(axis), p[axis], "below 2^31", 0};
  return {};
}

/// ScaledSm90's. One group of columns is no reason for other kernels than those of a model's longer K.
static i32 column_scales(const Problem& p) {
  if (p[Axis::k] > kScaledGroup && p[Axis::scale_columns_a] <= 1 && p[Axis::scale_columns_b] <= 1) return 1;
  return p[Axis::n] > 1 && p[Axis::scale_rows_b] == p[Axis::n] ? 2 : 0;
}

static ScaledSm90Params params(const Call<ScaledArgs>& c, i32 box_a, i32 box_b, i32 fetched = 128) {
  const ScaledArgs& a = c.args;
  const Problem& p = c.problem;
  const auto map = [&](const TensorView& operand, i32 box) {
    TensorMapSpec spec = sm90_operand(operand, box);
    spec.fetched = fetched;
    return c.device.make_tensor_map(spec);
  };
  return {.gemm = {.a = map(a.a, box_a),
                   .b = map(a.b, box_b),
                   .bias = a.bias.data,
                   .out = a.out.data,
                   .out_stride = a.out.strides[0],
                   .m = i32(p[Axis::m]),
                   .n = i32(p[Axis::n]),
                   .k = i32(p[Axis::k]),
                   .rows = box_a,
                   .parts = 1,
                   .pdl = p.pdl,
                   .bias_dtype = p.dtype(&A::bias),
                   .c = {a.c.data, a.c.strides[0], p.dtype(&A::c), p.tensor(&A::c).alignment}},
          .scales_a = scales_of(a.scales_a, p[Axis::m]),
          .scales_b = scales_of(a.scales_b, p[Axis::n])};
}

/// Rows of the widest tile of the kernel for few rows: a thread has two sets of sums, and two blocks share the registers where b is
/// wide.
static i64 most_swapped_rows(const Problem& p) { return p[Axis::n] > 64 * kSm90Sms ? 32 : 128; }
/// Whether that kernel is the better one: (24576, 1536) takes 17.5 us with it for 64 rows, 15.1 us with the other for 128.
static bool takes_few_rows(const Problem& p) {
  const bool few = p[Axis::m] <= 128 || 2 * ceil_div<i64>(p[Axis::m], 128) * ceil_div<i64>(p[Axis::n], 128) < kSm90Sms;
  return few && (p[Axis::m] <= most_swapped_rows(p) || p[Axis::n] <= 64 * kSm90Sms);
}

// ---- many rows ----

Rejection slower_scaled_sm90(const Problem& p, const DeviceInfo&) {
  if (takes_few_rows(p)) return {"m", p[Axis::m], "more tiles of 128 x 128 than half the multiprocessors", 0};
  return {};
}

/// The L2 fetches 256 bytes for a miss, those of two stages: six shapes at m = 4096 0.6 % less, (32768, 512) 1.5 %.
static ScaledSm90Params params_sm90(const Call<ScaledArgs>& c) {
  const ScaledSm90& product = c.config<ScaledSm90Config>().product;
  const TilesSm90& tiles = product.block.tiles;
  ScaledSm90Params with = params(c, sm90_few_rows(c.problem[Axis::m], tiles.tile_m), tiles.tile_n / pair_blocks(tiles), 256);
  if (dense_sm90_stores_boxes(product.block)) with.gemm.results = c.device.make_tensor_map(sm90_results(c.args.out, product.block));
  if (has_tile_slots(product)) with.boxes = scale_boxes(c.args.scales_a, c.problem[Axis::m], c.problem[Axis::k], c.device);
  return with;
}

Plan plan_scaled_sm90(const Problem& p, const DeviceInfo& device) {
  // The last of several tiles of 256 rows begins earlier, and what wgmma reads behind it are 128 rows of b's at most: rows_earlier_of_tile()
  const i64 last = (p[Axis::m] - 1) % 256 + 1;
  const bool tall = last >= 128 && size_of(p.dtype(&A::out)) == 2 && !p.tensor(&A::c).present;
  // Of no more columns, whose few rows have four kernels, pairs would be the ninth for scales of each stage: they gain 1 % at most. Scales of all of K follow the same rule
  const bool pairs = p[Axis::n] > 4096;
  const auto tiles = [&](const Sm90Tile& t) { return ceil_div<i64>(p[Axis::m], rows_at_once(t)) * ceil_div<i64>(p[Axis::n], t.n); };
  const auto best_of = [&](const auto& table) -> const Sm90Tile& {
    return least_time(table, p[Axis::k], kSm90StoreCost, [&](const Sm90Tile& t) -> i64 {
      const bool left_out = (t.m > kTileM && !tall) || (t.pair && !pairs);
      return left_out ? 0 : columns_in_rounds(t, tiles(t));
    });
  };
  const i32 scales = column_scales(p);
  const Sm90Tile& tile = scales == 0 ? best_of(kScaledSm90Tiles) : scales == 1 ? best_of(kScaledOnceSm90Tiles) : best_of(kColumnScaledSm90Tiles);
  const BlockSm90 block{.ending = ending_of(p), .tiles = {.tile_m = tile.m, .tile_n = tile.n, .stages = tile.stages, .pair = tile.pair}, .store = {.by_lanes = scaled_by_lanes(tile.n)}};
  const auto config = with_room(ScaledSm90Config{{.a_dtype = p.dtype(&A::a), .b_dtype = p.dtype(&A::b), .block = block, .column_scales = scales}}, device);
  Plan plan;
  plan.launch<params_sm90>(warp_specialised, config, {.x = blocks_of(tile, tiles(tile), device.sms), .smem = block_bytes(config), .cluster = u32(pair_blocks(tile)), .pdl = p.pdl});
  return plan;
}

// ---- few rows, narrow tiles ----

/// Pairs and one tile of 128 rows, m = 128: (7168, 2048) 7.6 us and 8.1, (6144, 4096) 9.6 and 11.0, (4096, 7168) 11.3 and 11.9 with K in two; (8704, 4096) 14.5 and 13.9.
/// K in two, m = 1, 16, 64: (3072, 7168) 8.2, 8.5, 8.7 us and 10.0, 9.5, 8.8, (4096, 7168) 9.8, 9.9, 10.3 and 10.5, 10.0, 9.9, (6144, 4096) 9.1, 9.2, 9.4 and 8.5, 8.6, 8.8; fewer columns of K were not
/// measured. Of more than
/// 192 columns there are tiles of 256.
static NarrowTiles narrow_tiles(const Problem& p, i64 m) {
  const i32 most_split = p.batch_invariant ? 0 : p[Axis::k] < 4096 ? 16 : m <= 16 ? 32 : 24;
  NarrowTiles tiles = narrow_tiles(m, p[Axis::n], most_split, 64);
  if (tiles.rows == 64 && tiles.high == 1 && tiles.columns > 192) tiles.columns = max_of(tiles.columns, 256);
  return tiles;
}
/// Two warpgroups, m = 1, 16, 64: (24576, 1536) 12.2, 12.2, 12.4 us and 12.6, 12.7, 12.8 of one; but pairs of tiles, m = 128: (7168, 2048) 8.6 and 7.7.
static i32 across(const NarrowTiles& tiles) { return tiles.rows == 64 && tiles.high == 1 && tiles.columns > 96 && tiles.columns % 16 == 0 ? 2 : 1; }

Rejection rejects_scaled_narrow_sm90(const Problem& p, const DeviceInfo& device) {
  if (const Rejection r = rejects_scaled_sm90_operands(p, device)) return r;
  if (p[Axis::m] > 128) return {"m", p[Axis::m], "at most {}", 128};
  const NarrowTiles tiles = narrow_tiles(p, p[Axis::m]);
  // The widest tiles whose sums and scales leave the registers of a thread without spills
  if (const i32 most = tiles.rows == 128 ? 96 : 256; tiles.columns > most) return {"n", p[Axis::n], "at most {}", most * kSm90Sms};
  return {};
}

/// Measured on an H200, six shapes: 4 to 20 % faster than the other variants from 33 rows on, of fewer the same to 15 %.
Rejection slower_scaled_narrow_sm90(const Problem& p, const DeviceInfo&) {
  if (!narrow_tiles(p, 1).occupy(p[Axis::n])) return {"n", p[Axis::n], "such that tiles are whole shares of {} multiprocessors", kSm90Sms};
  // (32768, 512): m = 64 7.6 us and 8.8 of warp_specialised, m = 1 the 7.6 and m = 16 7.7 instead of 7.5 of swap_ab
  if (narrow_tiles(p, p[Axis::m]).columns > 192 && p[Axis::m] <= most_swapped_rows(p)) return {"m", p[Axis::m], "more than {} beside so wide tiles", most_swapped_rows(p)};
  return {};
}

static ScaledSm90Params params_narrow(const Call<ScaledArgs>& c) {
  const TilesSm90& tiles = c.config<ScaledSm90Config>().product.block.tiles;
  return params(c, sm90_few_rows(c.problem[Axis::m], tiles.tile_m), tiles.tile_n);
}

Plan plan_scaled_narrow_sm90(const Problem& p, const DeviceInfo& device) {
  const NarrowTiles tiles = narrow_tiles(p, p[Axis::m]);
  const BlockSm90 block{.ending = ending_of(p), .tiles = {.tile_m = tiles.rows, .tile_n = tiles.columns, .stages = 16}, .store = {.by_lanes = 1}, .narrow = {.halves = tiles.splits > 1, .across = across(tiles)}};
  ScaledSm90Config config{{.a_dtype = p.dtype(&A::a), .b_dtype = p.dtype(&A::b), .block = block, .column_scales = column_scales(p), .narrow = 1}, narrow_threads(block, 1)};
  config = with_room(config, device);
  Plan plan;
  plan.launch<params_narrow>(narrow, config, {.x = tiles.blocks(p[Axis::n]), .smem = block_bytes(config), .cluster = u32(tiles.splits), .pdl = p.pdl});
  return plan;
}

// ---- few rows, swapped ----

Rejection slower_scaled_swap_ab_sm90(const Problem& p, const DeviceInfo&) {
  if (!takes_few_rows(p))
    return {"m", p[Axis::m], "at most {}, or so few columns that tiles of 128 x 128 leave half of the multiprocessors idle", 128};
  return {};
}

static ScaledSm90Params params_swapped(const Call<ScaledArgs>& c) {
  const SwapAbSm90& tiles = c.config<ScaledSwapAbConfig>().product.block.tiles;
  return params(c, sm90_few_rows(c.problem[Axis::m], tiles.tile_m), tiles.tile_n);
}

/// Time in ns of the loop over K and of adding up its parts. Measured on an H200: a block takes 110 ns and 2.5 for each row of a for a stage, two of
/// one multiprocessor three quarters of it each. Memory gives 4.4 bytes/ps. Parts take 1100 ns, and 400 for each but the first. (Of 128 rows a stage takes
/// 350 since: of 1 to 4 parts the fastest is still what this chooses, at m = 16, 64, 128 and six shapes.)
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

Plan plan_scaled_swap_ab_sm90(const Problem& p, const DeviceInfo& device) {
  const i64 m = p[Axis::m], n = p[Axis::n];
  const SwapAbShape shape = scaled_swapped_tile(min_of(m, most_swapped_rows(p)), n, device);
  const ScaledSwapAb product{p.dtype(&A::a), p.dtype(&A::b), {ending_of(p), shape.tiles}, column_scales(p) == 1};
  const i64 tiles = swapped_tiles(shape.tiles, m, n);
  const i32 splits = p.batch_invariant ? 1 : scaled_swapped_splits(shape, tiles, n, p[Axis::k], device.sms);
  Plan plan;
  plan.launch<params_swapped>(swap_ab, {product, swap_ab_threads(shape.tiles, 1), shape.min_blocks}, {.x = tiles * splits, .smem = scaled_swap_bytes(shape.tiles), .cluster = u32(splits), .pdl = p.pdl});
  return plan;
}

}  // namespace quern::gemm
