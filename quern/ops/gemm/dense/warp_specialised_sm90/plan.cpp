// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/dense/sm90.h"

#include <iterator>

#include "quern/op/memo.h"
#include "quern/ops/gemm/dense/call.h"

namespace quern::gemm {

using A = DenseArgs;

static const jit::Kernel<TilesSm90Config, DenseSm90Params> warp_specialised{"quern/ops/gemm/dense/warp_specialised_sm90/kernel.cuh", "dense_warp_specialised_sm90"};

constexpr i32 kTileM = 128;
static i64 tiles_of(const Problem& p, i32 tile_n) { return ceil_div<i64>(p[Axis::m], kTileM) * ceil_div<i64>(p[Axis::n], tile_n); }

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

bool takes_swapped(const Problem& p) { return p[Axis::m] <= kTileM || tiles_of(p, 64) <= kSm90Sms; }

DenseSm90Params sm90_params(const Call<DenseArgs>& c, const TensorMapSpec& map_of_a, i32 rows_b, i32 parts, i32 chunks) {
  const DenseArgs& a = c.args;
  return {.a = c.device.make_tensor_map(map_of_a),
          .b = c.device.make_tensor_map(chunks > 1 ? sm90_operand_in_turn(a.b, rows_b, chunks) : sm90_operand(a.b, rows_b, major_of(c.problem.tensor(&A::b)))),
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

static Rejection slower(const Problem& p, const DeviceInfo&) {
  if (const Rejection r = slower_m_major(p)) return r;
  if (takes_swapped(p)) return {"m", p[Axis::m], "more than 128, and more tiles of 128 x 64 than multiprocessors", 0};
  return {};
}

/// Whether b can be in tiles of so many columns: an N-major one comes in whole boxes.
static bool takes(const Problem& p, const Sm90Tile& t) { return !p.tensor(&A::b).transposed || t.n % dense_sm90_box(t.n) == 0; }

/// Whether more follows the sums than the bias.
static bool has_end(const Problem& p) { return p.tensor(&A::c).present || p.attr(&A::activation) != Activation::none; }

/// Time of `tiles` tiles, that of 128 x 1 x 1 being one: of a tile in turn a third of what storing takes is left, and either warpgroup's first one waits, 1 us. Tiles of up to 160 columns in turn took
/// 5 to 20 % longer than that in some runs with c or an activation; without, those of 128 and 144 with 25 rounds or more, in one run with 13.
static double time_of(const Problem& p, const Sm90Tile& t, i64 tiles) {
  constexpr double kStore = 180, kStoreInTurn = 60, kStartInTurn = 25000, kSlow = 1.08;
  const double rounds = double(ceil_div<i64>(tiles, kSm90Sms));
  const bool slow = t.alternate && t.n <= 160 && (has_end(p) || (rounds >= 16 && t.n < 160));
  const double cost = slow ? t.cost * kSlow : t.cost;
  return rounds * t.n * (double(p[Axis::k]) * cost + (t.alternate ? kStoreInTurn : kStore)) + (t.alternate ? kStartInTurn : 0);
}

/// The tiles of one n and k, whatever m, as a bit each: three or four, lest there be many kernels. First the best one for 4096 rows, then each time that with which results of 2 to 32 tiles above each
/// other, by 1 / height as m is rather small than large, take least beside what each would with the best of all, while it saves a percent.
static u32 choose_tiles_of_weight(const Problem& p) {
  constexpr size_t kTiles = std::size(kDenseSm90Tiles);
  constexpr i64 kLowest = 2, kHighest = 32, kHeights = kHighest - kLowest + 1;
  // Beside narrow_sm90's three kernels swap_ab_sm90 has two for more than 128 rows of up to 2816 columns; else it has four at most
  const bool narrow = !p.tensor(&A::a).transposed && !p.tensor(&A::b).transposed && narrow_tiles(1, p[Axis::n], 0, 0).occupy(p[Axis::n]);
  const int most = narrow && 3 * ceil_div<i64>(p[Axis::n], 64) <= kSm90Sms ? 3 : 4;
  double share[kTiles][kHeights], taken[kHeights], all = 0;  // of a height's time beside the best one's, times its weight
  for (i64 h = 0; h < kHeights; ++h) {
    double best = 1e300;
    for (size_t t = 0; t < kTiles; ++t) {
      const Sm90Tile& tile = kDenseSm90Tiles[t];
      share[t][h] = takes(p, tile) ? time_of(p, tile, (kLowest + h) * max_of<i64>(1, ceil_div<i64>(p[Axis::n], tile.n))) : 1e300;
      best = min_of(best, share[t][h]);
    }
    const double weight = 1.0 / double(kLowest + h);
    for (size_t t = 0; t < kTiles; ++t) share[t][h] = share[t][h] / best * weight;
    taken[h] = 1e300;
    all += weight;
  }
  u32 chosen = 0;
  double before = 1e300;
  for (int i = 0; i < most; ++i) {
    size_t next = kTiles;
    double least = before - 0.01 * all;
    for (size_t t = 0; t < kTiles; ++t) {
      double sum = 0;
      for (i64 h = 0; h < kHeights; ++h) sum += min_of(taken[h], share[t][h]);
      if (sum < least && (i > 0 || share[t][kHeights - 1] == 1.0 / kHighest)) least = sum, next = t;
    }
    if (next == kTiles) break;
    chosen |= 1u << next;
    before = least;
    for (i64 h = 0; h < kHeights; ++h) taken[h] = min_of(taken[h], share[next][h]);
  }
  return chosen;
}

/// The same, remembered: choosing takes 3 us. The key is all that it reads.
static u32 tiles_of_weight(const Problem& p) {
  struct Weight {
    i64 n, k;
    i32 m_major, n_major, end, unused;
    bool operator==(const Weight&) const = default;
  };
  static thread_local Memo<Weight, u32, 64> memo;
  const Weight weight{p[Axis::n], p[Axis::k], p.tensor(&A::a).transposed, p.tensor(&A::b).transposed, has_end(p), 0};
  return memo.of(weight, [&](const Weight&) { return choose_tiles_of_weight(p); });
}

/// `fold` keeps a second set of sums, up to 96 registers beside those of half of the rows.
static const Sm90Tile& choose(const Problem& p, bool fold) {
  if (fold) return least_time(kHalvedSm90Tiles, p[Axis::k], kSm90StoreCost, [&](const Sm90Tile& t) { return t.n <= 192 && takes(p, t) ? columns_in_rounds(t, tiles_of(p, t.n)) : 0; });
  const u32 chosen = tiles_of_weight(p);
  const Sm90Tile* best = nullptr;
  double best_time = 1e300;
  for (size_t t = 0; t < std::size(kDenseSm90Tiles); ++t) {
    if ((chosen >> t & 1) == 0) continue;
    const double time = time_of(p, kDenseSm90Tiles[t], tiles_of(p, kDenseSm90Tiles[t].n));
    if (time < best_time) best_time = time, best = &kDenseSm90Tiles[t];
  }
  return *best;
}

i32 sm90_group_log2(i64 m, i64 k, i32 tile_n) {
  constexpr i64 kShortK = 1536;
  const i64 high = ceil_div<i64>(m, kTileM);
  if (tile_n < 192 || k > kShortK || high < 16) return 3;
  return high < 32 ? 4 : 5;
}

static DenseSm90Params params(const Call<DenseArgs>& c) {
  const auto& config = c.config<TilesSm90Config>();
  const TilesSm90& tiles = config.block.tiles;
  DenseSm90Params params = sm90_params(c, sm90_operand(c.args.a, sm90_few_rows(c.problem[Axis::m], tiles.tile_m, tiles.a_major), tiles.a_major), tiles.tile_n, config.fold ? invariant_parts(c.problem, c.device.info()) : 1);
  params.group_log2 = sm90_group_log2(c.problem[Axis::m], c.problem[Axis::k], tiles.tile_n);
  if (dense_sm90_stores_boxes(config.block)) params.results = c.device.make_tensor_map(sm90_results(c.args.out, config.block));
  if (config.block.store.c_boxes) params.addend = c.device.make_tensor_map(sm90_results(c.args.c, config.block));
  return params;
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  const bool fold = p.batch_invariant && invariant_parts(p, device) > 1;
  const Sm90Tile& tile = choose(p, fold);
  const bool has_c = p.tensor(&A::c).present, c_boxes = has_c && p.dtype(&A::out) != DType::f32 && p.dtype(&A::c) == p.dtype(&A::out);
  const BlockSm90 block{.ending = ending_of(p),
                        .tiles = {.tile_m = kTileM, .tile_n = tile.n, .stages = tile.stages, .alternate = tile.alternate, .a_major = major_of(p.tensor(&A::a)), .b_major = major_of(p.tensor(&A::b))},
                        .store = {.c_boxes = c_boxes}};
  const auto config = with_room(TilesSm90Config{.block = block, .fold = fold}, device);
  Plan plan;
  plan.launch<params>(warp_specialised, config, {.x = min_of<i64>(device.sms, tiles_of(p, tile.n)), .smem = block_bytes(config), .pdl = p.pdl});
  return plan;
}

static const JoinVariant join("gemm.dense", 30, {"warp_specialised_sm90", rejects_sm90_operands, plan, slower});

}  // namespace quern::gemm
