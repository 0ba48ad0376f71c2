// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/dense.h"

#include <algorithm>
#include <cmath>

#include "quern/bricks/gemm/mma/ring_spec.h"
#include "quern/op/schema.h"
#include "quern/ops/gemm/dense/call.h"
#include "quern/ops/gemm/dense/portable/sum_splits_spec.h"
#include "quern/ops/gemm/dense/ref.h"
#include "quern/ops/gemm/dense/sm90.h"

namespace quern::gemm {

static const jit::Kernel<DenseConfig, DenseParams> mma_ring{"quern/ops/gemm/dense/portable/mma_ring.cuh", "dense_mma_ring"};
static const jit::Kernel<DenseSumConfig, DenseSumParams> sum_splits{"quern/ops/gemm/dense/portable/sum_splits.cuh", "dense_sum_splits"};

/// Splits of K begin at multiples of this: of every tile_k, and of the steps in which the kernel sums.
constexpr i64 kSplitUnit = 256;

/// A block's tile and how it is laid over warps. All run 4 warps; two blocks fit an SM with 96 KB of stages or less.
struct Tile {
  i32 m, n, k, stages, warps_m, warps_n;
};
// The narrow ones are for weights that stream from memory: three stages ahead are 48 KB of b a block, two blocks an SM.
constexpr Tile k16x64{16, 64, 128, 4, 1, 4};
constexpr Tile k32x64{32, 64, 128, 4, 1, 4};
constexpr Tile k64x64{64, 64, 64, 4, 2, 2};
constexpr Tile k64x128{64, 128, 64, 4, 2, 2};
constexpr Tile k128x128{128, 128, 64, 3, 2, 2};

static DenseConfig config_of(const Tile& t, DType dtype, DType out_dtype, i32 vector, bool sum_parts_in_block) {
  return {dtype, out_dtype, vector, t.m,      t.n,     t.k, t.stages, t.warps_m, t.warps_n, sum_parts_in_block, 32 * t.warps_m * t.warps_n,
          2,     0,         0,      Major::k, Major::k};
}

/// How much work there is, in f64: estimates need no exact integers.
struct Extents {
  double m, n, k;
};

/// Columns of K that one split sums when `splits` are wanted; there may be fewer then.
static i64 split_columns(i64 k, i64 splits) { return max_of(kSplitUnit, round_up(ceil_div(k, splits), kSplitUnit)); }

/// Time of a tile with K in `splits` parts, in ns: the slowest of memory, L2 and arithmetic, and what the second launch
/// costs. The L2 and the launch are an H200's, whatever the device, as only ratios matter for the choice. Fitted to this kernel there, an
/// SM: 32 B/ns of memory when 64 KB are in flight (Little's law at 2 us), and 2000 multiply-adds/ns by mma.sync where fragments are reused
/// enough.
static double estimate_ns(const Tile& t, double splits, const Extents& e, double sms) {
  const Rates& h200 = rates_of(90);
  const double l2_rate = sms * (h200.l2 / kSm90Sms);
  const double tiles = std::ceil(e.m / t.m) * std::ceil(e.n / t.n), blocks = tiles * splits;
  const double blocks_an_sm = std::ceil(blocks / sms), resident = min_of(2.0, blocks_an_sm);
  const double flying = min_of(blocks, resident * sms) * (t.stages - 1) * t.n * t.k * 2;
  const double memory = 2 * (e.n + e.m) * e.k / min_of(sms * 32, flying / 2000);
  const double l2 = tiles * (min_of<double>(t.m, e.m) + t.n) * e.k * 2 / l2_rate;
  const double rate = 2000.0 * t.m * t.n / (t.m * t.n + 32.0 * (t.m + t.n));
  const double arithmetic = blocks_an_sm * t.m * t.n * (e.k / splits) / rate;
  const double sum = splits > 1 ? h200.launch + 8 * splits * e.m * e.n / l2_rate : 0;
  return max_of(memory, max_of(l2, arithmetic)) + sum;
}

struct Choice {
  Tile tile;
  i64 split_k;
  bool sum_parts_in_block;  ///< one block sums all splits
};

/// Columns of a split when the order of sums must be the same for every m: from n and k alone. Enough blocks of 64
/// columns for 132 SMs while a split keeps 2048 columns.
static i64 invariant_split_columns(i64 n, i64 k) {
  const i64 wanted = 256 / max_of<i64>(1, ceil_div<i64>(n, 64));
  return split_columns(k, max_of<i64>(1, min_of(wanted, k / 2048)));
}

/// batch_invariant: m chooses the tile and who adds the splits up, never their boundaries. A block adds them itself
/// once there are rows enough for a block on every other SM; for fewer rows they run side by side, and their sums pass
/// through the workspace.
static Choice choose_invariant(const Problem& p, i32 vector, const DeviceInfo& device) {
  const i64 m = p[Axis::m], n = p[Axis::n], k = p[Axis::k], split_k = invariant_split_columns(n, k);
  if (m <= 16) return {k16x64, split_k, false};
  if (vector < 8) return {k64x64, split_k, false};
  if (m <= 32) return {k32x64, split_k, false};
  if (m <= 64) return {k64x64, split_k, false};
  const bool sum_parts_in_block = split_k < k && ceil_div<i64>(m, k64x128.m) * ceil_div<i64>(n, k64x128.n) * 2 >= device.sms;
  return {sum_parts_in_block || split_k < k ? k64x128 : k128x128, split_k, sum_parts_in_block};
}

/// The tile follows from m; among two of the same m, and for the splits of K, the estimate decides.
static Choice choose(const Problem& p, i32 vector, const DeviceInfo& device) {
  if (p.batch_invariant) return choose_invariant(p, vector, device);
  const i64 m = p[Axis::m], n = p[Axis::n], k = p[Axis::k];
  Tile tiles[2] = {k64x128, k128x128};
  i32 count = 2;
  if (m <= 16) tiles[0] = k16x64, count = 1;
  else if (vector < 8) tiles[0] = k64x64, count = 1;  // narrow copies bound the time, so one tile is enough
  else if (m <= 32) tiles[0] = k32x64, count = 1;
  else if (m <= 64) tiles[0] = k64x64, tiles[1] = k64x128;
  Choice best{tiles[0], split_columns(k, 1), false};
  const Extents extents{double(m), double(n), double(max_of<i64>(k, 1))};
  double best_ns = 1e300;
  for (i32 i = 0; i < count; ++i) {
    for (i64 splits = 1; splits <= 8; splits *= 2) {
      const i64 split_k = split_columns(k, splits), parts = max_of<i64>(1, ceil_div(k, split_k));
      const double ns = estimate_ns(tiles[i], double(parts), extents, device.sms);
      if (ns < best_ns) best_ns = ns, best = {tiles[i], split_k, false};
      // The next would leave a split fewer than 512 columns, or there are blocks enough
      const i64 blocks = ceil_div<i64>(m, tiles[i].m) * ceil_div<i64>(n, tiles[i].n) * splits;
      if (k < 1024 * splits || blocks >= 2 * device.sms) break;
    }
  }
  return best;
}

/// How K is split, for both launches.
struct Split {
  i64 columns;  ///< of K, of one split
  i32 count;
  Region sums;  ///< of each split; none where there is one
};

/// Partial sums: rows of whole 64 bytes, so that they are written and read by wide accesses.
static i64 partial_stride(const Problem& p) { return round_up<i64>(p[Axis::n], 16); }

static DenseParams multiply_params(const Call<DenseArgs, Split>& c) {
  const DenseArgs& a = c.args;
  const Problem& p = c.problem;
  return {.a = a.a.data,
          .b = a.b.data,
          .bias = c.choice.count > 1 ? nullptr : a.bias.data,
          .out = a.out.data,
          .partials = c.region(c.choice.sums),
          .a_stride = a.a.strides[p.tensor(&DenseArgs::a).transposed],
          .b_stride = a.b.strides[p.tensor(&DenseArgs::b).transposed],
          .out_stride = a.out.strides[0],
          .partial_stride = partial_stride(p),
          .m = p[Axis::m],
          .n = p[Axis::n],
          .k = p[Axis::k],
          .split_k = c.choice.columns,
          .bias_dtype = p.dtype(&DenseArgs::bias),
          .out_alignment = p.tensor(&DenseArgs::out).alignment,
          .c = c_of(c)};
}

static DenseSumParams sum_params(const Call<DenseArgs, Split>& c) {
  const DenseArgs& a = c.args;
  const Problem& p = c.problem;
  return {.partials = c.region(c.choice.sums),
          .bias = a.bias.data,
          .out = a.out.data,
          .partial_stride = partial_stride(p),
          .out_stride = a.out.strides[0],
          .m = p[Axis::m],
          .n = p[Axis::n],
          .splits = c.choice.count,
          .bias_dtype = p.dtype(&DenseArgs::bias),
          .out_alignment = p.tensor(&DenseArgs::out).alignment,
          .c = c_of(c)};
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  using A = DenseArgs;
  const i32 vector = min_of(p.vector(&A::a), p.vector(&A::b));
  const Choice choice = choose(p, vector, device);
  DenseConfig config = config_of(choice.tile, p.dtype(&A::a), p.dtype(&A::out), vector, choice.sum_parts_in_block);
  config.a_major = major_of(p.tensor(&A::a)), config.b_major = major_of(p.tensor(&A::b));
  const i64 tiles = ceil_div<i64>(p[Axis::m], config.tile_m) * ceil_div<i64>(p[Axis::n], config.tile_n);
  const i64 splits = choice.sum_parts_in_block ? 1 : max_of<i64>(1, ceil_div(p[Axis::k], choice.split_k));
  const i32 has_c = p.tensor(&A::c).present, activation = i32(p.attr(&A::activation));
  if (splits == 1) config.has_c = has_c, config.activation = activation;
  Plan plan;
  Split split{choice.split_k, i32(splits), {}};
  if (splits > 1) split.sums = plan.scratch("sums of splits", splits * p[Axis::m] * partial_stride(p) * 4);
  plan.launch<multiply_params>(mma_ring, config, {.x = tiles, .y = splits, .smem = dense_smem(config).bytes, .pdl = p.pdl}, split);
  if (splits == 1) return plan;
  const DenseSumConfig sum{p.dtype(&A::a), p.dtype(&A::out), 256, has_c, activation};
  // Where the GPU can (sm_90), its blocks are scheduled while the last tiles are multiplied; they wait before they read
  plan.launch<sum_params>(sum_splits, sum,
                          {.x = p[Axis::m], .y = ceil_div<i64>(p[Axis::n], 4 * sum.threads), .pdl = device.arch.number >= 90}, split);
  return plan;
}

static Cost cost(const Problem& p, const DenseArgs&) {
  using A = DenseArgs;
  const double m = double(p[Axis::m]), n = double(p[Axis::n]), k = double(p[Axis::k]);
  const double bias = p.tensor(&A::bias).present ? n * size_of(p.dtype(&A::bias)) : 0;
  const double c = p.tensor(&A::c).present ? m * n * size_of(p.dtype(&A::c)) : 0;
  return {.bytes = (m + n) * k * 2 + m * n * size_of(p.dtype(&A::out)) + bias + c, .flops = 2 * m * n * k};
}

/// One rounding of the result. Of the terms' magnitude: a sum of k products in f32 is off by about sqrt(k) roundings
/// (they are independent), and mma.sync cuts off where it aligns 17 addends, each by at most one unit of the largest; the
/// bias and c are a rounding each. The activation passes that on, times its greatest slope (gelu: 1.129 at sqrt 2, silu: 1.0998),
/// and adds its own error (kit/activation.cuh), of which |its argument| is at most the magnitude.
static Budget budget(const Problem& p) {
  const DType out = p.dtype(&DenseArgs::out);
  const Activation activation = p.attr(&DenseArgs::activation);
  const double slope = activation == Activation::gelu ? 1.13 : activation == Activation::silu ? 1.1 : 1;
  const double own = activation == Activation::gelu ? 8 : activation == Activation::silu ? 6 : 0;
  return {.of_value = unit_roundoff(out), .of_magnitude = (slope * (8 + 2 * std::sqrt(double(p[Axis::k]))) + own) * 0x1p-24};
}

/// c and an activation: each of these is met by two variants. Cases of one ending keep to one tile of each variant, or most of a check
/// would be compiles. In place, c has the dtype of out, else the other one.
static void derive_ending(Case& which) {
  if (which["ending"] == 0) return;
  const bool small = which["ending"] == 1;
  which["c.present"] = 1;
  which["activation"] = 1 + i32(which["hopper"] + which["ending"] - 1) % 3;
  which["a.dtype"] = int(DType::bf16);
  which["a.pad"] = which["b.pad"] = 0;
  which["out_f32"] = !small;
  if (which["hopper"] != 0) which["k"] = std::min<double>(which["k"], 256.0);
  if (which["hopper"] == 1 || (which["hopper"] == 0 && small)) which["m"] = std::min<double>(which["m"], 16.0);
  else if (which["hopper"] == 0) which["m"] = which["m"] > 16 ? 49 : 17;
}

/// Some of the widths as models have them, whose tiles are 24, 48, 56 and 144 columns wide (of up to 16 rows with batch_invariant 72, two a
/// block), of pairs of tiles 176, and the widest: 88, three a block, of up to 64 rows, pairs of 256, two a block, of more; of few columns
/// of K then; of 64 with as many as are split for 33 to 64 rows, in the place of k = 33, one of several that are 64 here.
static void derive_narrow(Case& which) {
  if (which["k"] == 33) {
    which["m"] = std::clamp<double>(which["m"], 33., 64.);
    which["n"] = 3400;
    which["k"] = 7168;
    which["batch_invariant"] = 0;
    return;
  }
  which["a.transposed"] = which["b.transposed"] = 0;
  if (which["m"] > 0 && which["m"] <= kNarrowMmaRows && which["batch_invariant"] == 0) which["m"] += kNarrowMmaRows;
  which["m"] = std::min<double>(which["m"], 128.);
  which["k"] = std::max(64., double(round_up(i64(which["k"]), i64(64))));
  const double wider = which["n"] == 176   ? 2904
                       : which["n"] == 184 ? 5288
                       : which["n"] == 256 ? 7168
                       : which["n"] == 77  ? (which["m"] > 16 && which["m"] <= 64 ? 33800 : 32776)
                       : which["n"] != 264 ? 0
                       : which["m"] > 64   ? 10568
                                           : 19008;
  if (wider != 0) which["n"] = wider;
  if (wider != 0 || which["batch_invariant"] != 0) which["k"] = std::min<double>(which["k"], 128.);  // K in one part
}

/// Up to 16 rows, by mma.sync: tiles of 16, 24, 40 and 56 columns, of 32, three a block, and of 64, four; and K of 8 KB, of which tiles
/// begin at different places, two a block.
static void derive_narrow_mma(Case& which) {
  which["a.transposed"] = which["b.transposed"] = which["batch_invariant"] = 0;
  if (which["m"] > kNarrowMmaRows) which["m"] = 1 + i64(which["m"]) % kNarrowMmaRows;
  if (which["k"] == 4097) {
    which["k"] = 4096;
    which["n"] = 6144;
    which["m"] = std::min<double>(which["m"], 4.);
    return;
  }
  which["k"] = std::max(64., double(round_up(i64(which["k"]), i64(64))));
  const double n = which["n"], wider = n == 176 ? 2904 : n == 184 ? 5280 : n == 256 ? 7168 : n == 264 ? 12288 : n == 77 ? 32776 : 0;
  if (wider != 0) which["n"] = wider, which["k"] = std::min<double>(which["k"], 320.);
}

/// Each of the tiles for many rows, by the n of the axis: of 128 and 144 columns two rounds, of 192 also more above each other than are
/// taken at a time (sm90_group_log2()), in the place of n = 0, which hopper = 2 has. K is short, as there is much of each. With a c (6)
/// that comes by TMA 256 too.
static void derive_wide(Case& which) {
  struct Wide {
    double axis, n, high;
    const char* tile;
    double k = 0;
  };  // columns; tiles above each other; columns of K, 0: those of the axis, as few as two stages
  constexpr Wide kWide[] = {{128, 5000, 5, "128x128_turns"}, {176, 2568, 6, "128x176_turns"}, {184, 8456, 3, "128x224"},
                            {256, 4232, 7, "128x144_turns"}, {264, 2528, 6, "128x160_turns"}, {77, 2888, 7, "128x192_turns"},
                            {0, 1536, 33, "128x192_turns"},  {8, 6344, 2, "128x112"}};
  constexpr Wide kNarrowest{1, 0, 0, "128x96"};
  const bool c = which["hopper"] == 6;
  which["ending"] = 0;
  if (c) {
    which["c.present"] = 1;
    which["a.dtype"] = which["c.dtype"] = int(DType::bf16);
    which["out_f32"] = which["a.transposed"] = which["b.transposed"] = 0;
  }
  constexpr Wide kWideWithC[] = {{128, 6456, 5, "128x256", 264}, {0, 5000, 5, "128x128_turns"}};
  const auto take = [&](const Wide& wide) {
    which["variant"] = variant_index("gemm.dense", std::string("warp_specialised_sm90:") + wide.tile);
  };
  const auto widen = [&](const Wide& wide) {
    if (which["n"] != wide.axis) return false;
    which["k"] = wide.k != 0 ? wide.k : std::clamp<double>(which["k"], 63., 72.);
    which["n"] = wide.n;
    which["m"] = 128 * (wide.high - 1) + 1 + i64(which["m"]) % 128;
    which["a.transposed"] = which["b.transposed"] = 0;
    which["batch_invariant"] = 0;
    take(wide);
    return true;
  };
  if (which["n"] == kNarrowest.axis) {
    which["m"] = 129 + i64(which["m"]) % 31;  // the last tile begins earlier, by fewer rows than it has columns
    which["a.transposed"] = which["b.transposed"] = which["batch_invariant"] = 0;
    take(kNarrowest);
    return;
  }
  if (c && std::ranges::any_of(kWideWithC, widen)) return;
  std::ranges::any_of(kWide, widen);
}

/// Each of warp_specialised_sm90's swapped tiles, by the n of the axis: two above each other, of several widths, on all multiprocessors,
/// with short K; and some with an M-major a, ragged weights and an activation.
static void derive_swapped_tiles(Case& which) {
  struct Swapped {
    double axis, n, first_m;
    const char* tile;
  };
  constexpr Swapped kSwapped[] = {
      {128, 8440, 140, "128x128_swapped"}, {0, 8448, 180, "128x128_swapped"},   {1, 8448, 216, "128x128_swapped"},
      {8, 8448, 264, "192x128_swapped"},   {77, 8448, 300, "192x128_swapped"},  {176, 8440, 340, "192x128_swapped"},
      {184, 8448, 400, "256x128_swapped"}, {256, 8448, 440, "256x128_swapped"}, {264, 264, 129, "128x128_swapped"}};
  const Swapped& swapped = *std::ranges::find(kSwapped, double(which["n"]), &Swapped::axis);
  which["variant"] = variant_index("gemm.dense", std::string("warp_specialised_sm90:") + swapped.tile);
  if (swapped.n > swapped.axis) which["k"] = std::clamp<double>(which["k"], 63., 72.), which["a.transposed"] = which["b.transposed"] = 0;
  else which["activation"] = double(i64(which["m"]) % 4);
  which["n"] = swapped.n;
  which["m"] = swapped.first_m + double(i64(which["m"]) % 64);
  which["out_f32"] = which["ending"] = which["batch_invariant"] = 0;
  which["k"] = std::max<double>(8, double(round_up(i64(which["k"]), i64(8))));  // rows of whole 16 bytes
}

/// Each of swap_ab_sm90's tiles for more than 128 rows, by the k of the axis, also with K in parts.
static void derive_swapped(Case& which) {
  struct Swapped {
    double axis;
    const char* tile;
  };
  constexpr Swapped kSwapped[] = {
      {0, "64x64"},           {1, "96x64"},    {8, "128x64"},           {33, "160x64"},         {63, "256x64"},
      {64, "96x128"},         {65, "160x128"}, {256, "160x128_parts2"}, {1000, "96x64_parts4"}, {1984, "160x64_parts2"},
      {4097, "256x64_parts4"}};
  which["m"] += 129;
  if (which["n"] == 0) which["n"] = 200;
  which["a.transposed"] = which["batch_invariant"] = 0;
  for (const Swapped& swapped : kSwapped)
    if (which["k"] == swapped.axis) which["variant"] = variant_index("gemm.dense", std::string("swap_ab_sm90:") + swapped.tile);
  which["k"] = std::max<double>(8, double(round_up(i64(which["k"]), i64(8))));  // rows of whole 16 bytes
}

static void derive(Case& which) {
  if (which["hopper"] < 5) derive_ending(which);
  if (const double hopper = which["hopper"]; hopper != 0) {
    which["variant"] = variant_index("gemm.dense", hopper == 1 || hopper == 7   ? "swap_ab_sm90"
                                                   : hopper == 3 || hopper == 4 ? "narrow_sm90"
                                                                                : "warp_specialised_sm90");
    if (hopper == 3) derive_narrow(which);
    if (hopper == 4) derive_narrow_mma(which);
    if (hopper == 5 || hopper == 6) derive_wide(which);
    if (hopper == 5) which["k"] = double(round_up(i64(which["k"]), i64(8)));  // tiles in turns want b K-major, in whole 16 bytes
    if (hopper == 7) derive_swapped(which);
    if (hopper == 8) derive_swapped_tiles(which);
    which["n"] = double(round_up(i64(which["n"]), i64(8)));
    which["k"] = std::max<double>(which["k"], 1.0);
    for (const char* pad : {"a.pad", "b.pad", "out.pad", "c.pad"}) which[pad] = which[pad] == 0 ? 0 : 8;
    if (which["k"] == 1) which["a.transposed"] = which["b.transposed"] = 0;  // columns of one element are rows
    if (which["a.transposed"] != 0) which["a.pad"] += double(-i64(which["m"]) & 7);
  }
  if (which["out_f32"] != 0) which["out.dtype"] = int(DType::f32);
  if (which["bias_f32"] != 0) which["bias.dtype"] = int(DType::f32);
  if (which["c.present"] == 0) which["out.in_place"] = 0;
  const bool out_f32 = which["out_f32"] != 0;
  if (which["out.in_place"] != 0 || which["ending"] == 1 || which["ending"] == 2)
    which["c.dtype"] = (which["out.in_place"] != 0) == out_f32 ? int(DType::f32) : int(which["a.dtype"]);
}

static std::vector<Case> bench_shapes() {
  std::vector<Case> shapes;
  // A layer of a Llama-3-8B-sized model (q, k, v in one; attention's output; gate and up in one; down), and of DeepSeek-V3-sized ones
  const double layer[4][2] = {{6144, 4096}, {4096, 4096}, {28672, 4096}, {4096, 14336}};
  const double wide[6][2] = {{2112, 7168}, {24576, 1536}, {32768, 512}, {7168, 16384}, {4096, 7168}, {7168, 2048}};
  for (const double m : {1, 16, 64, 128}) {
    for (const auto& [n, k] : layer) shapes.push_back({{"m", m}, {"n", n}, {"k", k}});
    for (const auto& [n, k] : wide) shapes.push_back({{"m", m}, {"n", n}, {"k", k}});
  }
  for (const auto& [n, k] : wide) shapes.push_back({{"m", 4096}, {"n", n}, {"k", k}});
  shapes.push_back({{"m", 4096}, {"n", 4096}, {"k", 4096}});
  shapes.push_back({{"m", 8192}, {"n", 8192}, {"k", 8192}});
  // What the end of a tile costs: each beside the plain one above
  for (const double* nk : {wide[4], wide[5]})
    for (const Case& end : {Case{{"bias.present", 1}}, Case{{"c.present", 1}}, Case{{"activation", double(i32(Activation::gelu))}}}) {
      shapes.push_back({{"m", 4096}, {"n", nk[0]}, {"k", nk[1]}});
      shapes.back().insert(end.begin(), end.end());
    }
  // The other layouts
  for (const double m : {16, 4096})
    for (const auto& [a, b] : {std::pair{0, 1}, {1, 0}, {1, 1}})
      shapes.push_back({{"m", m}, {"n", 4096}, {"k", 7168}, {"a.transposed", a}, {"b.transposed", b}});
  return shapes;
}

QN_OP(dense, DenseArgs, "gemm.dense")
    .doc("out[i, j] = activation(sum_x a[i, x] * b[j, x] + bias[j] + c[i, j]), in f32")
    .in("a", &DenseArgs::a, "m k", {DType::bf16, DType::f16})
    .either_major()
    .in("b", &DenseArgs::b, "n k", like("a"))
    .either_major()
    .meaning("a weight as frameworks store it: rows are outputs")
    .read_early()
    .in("bias", &DenseArgs::bias, "n", like("a", {DType::f32}))
    .optional()
    .in("c", &DenseArgs::c, "m n", like("a", {DType::f32}))
    .optional()
    .meaning("a residual; out itself, to accumulate into it")
    .out("out", &DenseArgs::out, "m n", like("a", {DType::f32}))
    .may_be("c")
    .attr("activation", &DenseArgs::activation)
    .words({"none", "relu", "gelu", "silu"})
    .meaning("gelu is that of erf")
    .rows(Axis::m)
    .plan(plan)
    .reference<dense_ref<double>, dense_ref<OrderFree>>()
    .cost<cost>()
    .budget(budget)
    .cases(
        {{"m", {1, 0, 3, 16, 17, 64, 127, 128, 129}},
         {"n", {128, 0, 1, 8, 77, 176, 184, 256, 264}},
         {"k", {64, 0, 1, 8, 33, 63, 65, 256, 1000, 1984, 4097}},
         {"hopper",
          {0, 1, 2, 3, 4, 5, 6, 7, 8},
          "asks for the variant swap_ab_sm90 (1; 7: each of its tiles for more than 128 rows), warp_specialised_sm90 (2; 5: each of its tiles; 6: with c; 8: swapped ones) or narrow_sm90 (3; 4: by mma.sync), and makes the case one that it takes"},
         {"ending", {0, 0, 0, 0, 0, 1, 2}, "adds c and an activation to a case of few rows (1) or more (2)"},
         {"a.dtype", {DType::bf16, DType::f16}},
         {"out_f32", {0, 1}, "out is f32"},
         {"bias.present", {0, 1}},
         {"bias_f32", {0, 1}, "bias is f32"},
         {"a.transposed", {0, 1}},
         {"b.transposed", {0, 1}},
         {"a.pad", {0, 8, 4, 2, 3}},
         {"b.pad", {0, 8, 1}},
         {"out.pad", {0, 8, 5}},
         {"c.pad", {0, 8, 4, 5}},
         {"batch_invariant", {0, 1}}},
        derive)
    .bench(bench_shapes());

}  // namespace quern::gemm
