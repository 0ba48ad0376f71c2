// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/dense/sm90.h"

#include "quern/ops/gemm/dense/call.h"

namespace quern::gemm {

using A = DenseArgs;

static const jit::Kernel<TilesSm90Config, DenseSm90Params> warp_specialised{"quern/ops/gemm/dense/warp_specialised_sm90/kernel.cuh",
                                                                            "dense_warp_specialised_sm90"};

constexpr i32 kTileM = 128;
static i64 tiles_of(const Problem& p, const Sm90Tile& tile, const DeviceInfo& device) {
  return blocks_of({Sm90Kind::tiles, &tile}, dense_product_of(p), 1, device);
}

Rejection rejects_sm90_operands(const Problem& p, const DeviceInfo& device) {
  if (device.arch.number != 90) return {"arch", device.arch.number, "{}: wgmma", 90};
  const i32 vector = min_of(p.vector(&A::a), p.vector(&A::b));
  if (vector < 8) return {"alignment of a and b", 2 * vector, "{} bytes for every row", 16};
  if (p.tensor(&A::out).alignment < 16) return {"alignment of out", p.tensor(&A::out).alignment, "{} bytes for every row", 16};
  if (p.tensor(&A::c).alignment < 16) return {"alignment of c", p.tensor(&A::c).alignment, "{} bytes for every row", 16};
  if (p[Axis::n] % 8 != 0) return {"n", p[Axis::n], "a multiple of {}", 8};
  if (p[Axis::k] == 0) return {"k", 0, "a positive one", 0};
  for (const Axis axis : {Axis::m, Axis::n, Axis::k})
    if (p[axis] > 0x7fffff00) return {name(axis), p[axis], "below 2^31", 0};
  return {};
}

Rejection slower_m_major(const Problem& p) {
  if (p.batch_invariant && p.tensor(&A::a).transposed) return {"a", "M-major", "K-major with batch_invariant"};
  return {};
}

DenseSm90Params sm90_params(const Call<DenseArgs>& c, const TensorMapSpec& map_of_a, i32 rows_b, i32 parts, i32 chunks) {
  const DenseArgs& a = c.args;
  return {.a = c.device.make_tensor_map(map_of_a),
          .b = c.device.make_tensor_map(chunks > 1 ? sm90_operand_in_turn(a.b, rows_b, chunks)
                                                   : sm90_operand(a.b, rows_b, major_of(c.problem.tensor(&A::b)))),
          .bias = a.bias.data,
          .out = a.out.data,
          .out_stride = a.out.strides[0],
          .m = i32(c.problem[Axis::m]),
          .n = i32(c.problem[Axis::n]),
          .k = i32(c.problem[Axis::k]),
          .parts = parts,
          .pdl = c.problem.pdl,
          .bias_dtype = c.problem.dtype(&A::bias),
          .c = c_of(c)};
}

static Rejection slower(const Problem& p, const DeviceInfo& device) {
  if (const Rejection r = slower_m_major(p)) return r;
  if (takes_swapped(p, device))
    return {"m", p[Axis::m], "more than 128, and so many that tiles of swap_ab_sm90 take longer by estimate", 0};
  return {};
}

/// A named candidate may be one that plan would not choose.
static Rejection rejects(const Problem& p, const DeviceInfo& device) {
  if (const Rejection r = rejects_sm90_operands(p, device)) return r;
  if (p.candidate < 0) return {};
  const Sm90Tile& tile = kDenseSm90Tiles[p.candidate];
  if (tile.swapped && p.dtype(&A::out) == DType::f32) return {"out", "f32", "16 bits where tiles are swapped"};
  if (tile.swapped && p.tensor(&A::c).present) return {"c", "one", "none where tiles are swapped"};
  if (!takes_columns(p, tile)) return {"b", "N-major", "K-major with tiles that are no whole boxes"};
  if (const i32 parts = p.batch_invariant ? invariant_parts(p, device) : 1; tile.swapped && parts > 1)
    return {"parts of K", parts, "{} where tiles are swapped", 1};
  if (p.batch_invariant && invariant_parts(p, device) > 1 && !takes_parts(tile))
    return {"tile_n", tile.n, "at most {} in halves where batch_invariant has parts of K", kMostFolded};
  return {};
}

static const Sm90Tile& choose(const Problem& p, const DeviceInfo& device) {
  if (p.candidate >= 0) return kDenseSm90Tiles[p.candidate];
  const ManyRowsChoice choice = choose_dense_many_rows(p, device);
  const Sm90Kernel& kernel = dense_many_rows_kernels()[size_t(choice.kernel)];
  if (kernel.kind == Sm90Kind::tiles) return *kernel.tile;
  // By the variant's name, where another makes so few rows
  const Sm90Tile* best = nullptr;
  double least = 1e300;
  for (const Sm90Kernel& k : dense_many_rows_kernels())
    if (const double ns = k.kind == Sm90Kind::tiles ? dense_many_rows_ns(p, k, choice.parts, device) : 1e300; ns < least)
      least = ns, best = k.tile;
  return *best;
}

i32 sm90_group_log2(i64 m, i64 k, i32 tile_n) {
  constexpr i64 kShortK = 1536;
  const i64 high = ceil_div<i64>(m, kTileM);
  if (tile_n < 192 || k > kShortK || high < 16) return 3;
  return high < 32 ? 4 : 5;
}

/// What the kernel has for a, b, m and n are the others of the call.
static DenseSm90Params swapped_params(const Call<DenseArgs>& c, const TilesSm90Config& config) {
  const TilesSm90& tiles = config.block.tiles;
  const i32 rows =
      swapped_share({.n = tiles.tile_m, .m = tiles.tile_n, .swapped = tiles.swapped}, dense_product_of(c.problem), c.device.info().sms);
  DenseSm90Params params = sm90_params(c, sm90_operand(c.args.a, tiles.b_major == Major::k ? rows : tiles.tile_n, tiles.b_major),
                                       sm90_few_rows(c.problem[Axis::n], tiles.tile_m, tiles.a_major), 1);
  std::swap(params.a, params.b);
  std::swap(params.m, params.n);
  params.rows = rows;
  params.results = c.device.make_tensor_map(sm90_results(c.args.out, config.block));
  return params;
}

static DenseSm90Params params(const Call<DenseArgs>& c) {
  const auto& config = c.config<TilesSm90Config>();
  const TilesSm90& tiles = config.block.tiles;
  if (tiles.swapped) return swapped_params(c, config);
  DenseSm90Params params =
      sm90_params(c, sm90_operand(c.args.a, sm90_few_rows(c.problem[Axis::m], tiles.tile_m, tiles.a_major), tiles.a_major), tiles.tile_n,
                  config.sum_parts_in_block ? invariant_parts(c.problem, c.device.info()) : 1);
  params.group_log2 = sm90_group_log2(c.problem[Axis::m], c.problem[Axis::k], tiles.tile_n);
  if (dense_sm90_stores_boxes(config.block)) params.results = c.device.make_tensor_map(sm90_results(c.args.out, config.block));
  if (config.block.store.c_boxes) params.addend = c.device.make_tensor_map(sm90_results(c.args.c, config.block));
  return params;
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  const bool sum_parts_in_block = p.batch_invariant && invariant_parts(p, device) > 1;
  const Sm90Tile& tile = choose(p, device);
  const bool has_c = p.tensor(&A::c).present, c_boxes = has_c && p.dtype(&A::out) != DType::f32 && p.dtype(&A::c) == p.dtype(&A::out);
  const Major a_major = major_of(p.tensor(&A::a)), b_major = major_of(p.tensor(&A::b));
  const BlockSm90 block{.ending = ending_of(p),
                        .tiles = {.tile_m = kTileM,
                                  .tile_n = wgmma_columns(tile),
                                  .stages = tile.stages,
                                  .alternate = tile.alternate,
                                  .a_major = tile.swapped ? b_major : a_major,
                                  .b_major = tile.swapped ? a_major : b_major,
                                  .swapped = tile.swapped},
                        .store = {.c_boxes = c_boxes}};
  const auto config = with_room(TilesSm90Config{.block = block, .sum_parts_in_block = sum_parts_in_block}, device);
  Plan plan;
  plan.launch<params>(warp_specialised, config,
                      {.x = min_of<i64>(device.sms, tiles_of(p, tile, device)), .smem = block_bytes(config), .pdl = p.pdl});
  return plan;
}

static const CandidateNames names(kDenseSm90Tiles);
static const JoinVariant join("gemm.dense", 30, {"warp_specialised_sm90", rejects, plan, slower, names.all()});

}  // namespace quern::gemm
