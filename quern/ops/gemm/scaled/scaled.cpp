// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/scaled.h"

#include <algorithm>
#include <cmath>

#include "quern/bricks/gemm/mma/scaled_ring_spec.h"
#include "quern/bricks/gemm/plan.h"
#include "quern/op/variants.h"
#include "quern/ops/gemm/scaled/call.h"
#include "quern/ops/gemm/scaled/ref.h"

namespace quern::gemm {

using A = ScaledArgs;

static const jit::Kernel<ScaledConfig, ScaledParams> mma_ring{"quern/ops/gemm/scaled/portable/mma_ring.cuh", "scaled_mma_ring"};

// ---- shapes of scales ----

static Rejection rejects_rows_a(const Problem& p) {
  const i64 rows = p[Axis::scale_rows_a], m = p[Axis::m];
  if (rows == m || rows == 1) return {};
  return {"scale_rows_a", rows, "{} (m, one for each row of `a`) or 1", m};
}

static Rejection rejects_rows_b(const Problem& p) {
  const i64 rows = p[Axis::scale_rows_b], n = p[Axis::n];
  if (rows == n || rows == ceil_div<i64>(n, kScaledGroup) || rows == 1) return {};
  return {"scale_rows_b", rows, "n, ceil(n / 128) or 1, where n is {}", n};
}

static Rejection rejects_columns(const Problem& p, Axis axis) {
  const i64 columns = p[axis], groups = ceil_div<i64>(p[Axis::k], kScaledGroup);
  if (columns == groups || columns == 1) return {};
  return {name(axis), columns, "{} (ceil(k / 128)) or 1", groups};
}
static Rejection rejects_columns_a(const Problem& p) { return rejects_columns(p, Axis::scale_columns_a); }
static Rejection rejects_columns_b(const Problem& p) { return rejects_columns(p, Axis::scale_columns_b); }

/// Of an operand with `rows` rows.
Scales scales_of(const TensorView& v, i64 rows) {
  const bool each = v.shape[0] == rows;
  return {.data = v.data,
          .row_stride = v.shape[0] == 1 ? 0 : v.strides[0],
          .column_stride = v.shape[1] == 1 ? 0 : v.strides[1],
          .row_shift = each ? 0 : 7};
}

// ---- variant portable ----

/// A block's tile and how it is laid over warps. Two blocks fit an SM with 82 KB of stages or less, an A100 too.
struct Tile {
  i32 m, n, stages, warps_m, warps_n;
};
constexpr Tile k16x64{16, 64, 6, 1, 4};
constexpr Tile k64x128{64, 128, 3, 2, 2};

static ScaledParams params(const Call<ScaledArgs>& call) {
  const ScaledArgs& a = call.args;
  const Problem& p = call.problem;
  return {.a = a.a.data,
          .b = a.b.data,
          .bias = a.bias.data,
          .out = a.out.data,
          .scales_a = scales_of(a.scales_a, p[Axis::m]),
          .scales_b = scales_of(a.scales_b, p[Axis::n]),
          .c = {a.c.data, a.c.strides[0], p.dtype(&A::c), p.tensor(&A::c).alignment},
          .a_stride = a.a.strides[0],
          .b_stride = a.b.strides[0],
          .out_stride = a.out.strides[0],
          .m = p[Axis::m],
          .n = p[Axis::n],
          .k = p[Axis::k],
          .bias_dtype = p.dtype(&A::bias),
          .out_alignment = p.tensor(&A::out).alignment};
}

static Plan plan(const Problem& p, const DeviceInfo&) {
  const Tile& t = p[Axis::m] <= k16x64.m ? k16x64 : k64x128;
  const i32 vector = min_of(p.vector(&A::a), p.vector(&A::b));
  const ScaledConfig config{p.dtype(&A::a), p.dtype(&A::b), p.dtype(&A::out), vector < 4 ? 1 : vector,    t.m, t.n,
                            t.stages,       t.warps_m,      t.warps_n,        32 * t.warps_m * t.warps_n, 2};
  Plan plan;
  plan.launch<params>(
      mma_ring, config,
      {.x = ceil_div<i64>(p[Axis::m], t.m) * ceil_div<i64>(p[Axis::n], t.n), .smem = scaled_smem(config).bytes, .pdl = p.pdl});
  return plan;
}

// ---- what checks and benchmarks know ----

static Cost cost(const Problem& p, const ScaledArgs&) {
  const double m = double(p[Axis::m]), n = double(p[Axis::n]), k = double(p[Axis::k]);
  const double bias = p.tensor(&A::bias).present ? n * size_of(p.dtype(&A::bias)) : 0;
  const double c = p.tensor(&A::c).present ? m * n * size_of(p.dtype(&A::c)) : 0;
  const double scales = 4 * double(p[Axis::scale_rows_a] * p[Axis::scale_columns_a] + p[Axis::scale_rows_b] * p[Axis::scale_columns_b]);
  return {.bytes = (m + n) * k + scales + m * n * size_of(p.dtype(&A::out)) + bias + c, .flops = 2 * m * n * k};
}

static Budget budget(const Problem& p) { return scaled_budget(p.dtype(&A::out), p[Axis::k], is_of_variant(p, "portable")); }

/// Rows and columns of the scales by the word recipe.
static void derive_scales(Case& which) {
  const double m = which["m"], n = which["n"], blocks = double(ceil_div<i64>(i64(n), kScaledGroup));
  const double groups = double(ceil_div<i64>(i64(which["k"]), kScaledGroup));
  const double shapes[6][4] = {{m, groups, blocks, groups}, {m, groups, n, groups}, {m, 1, n, 1}, {1, 1, 1, 1},
                               {m, groups, 1, 1},           {1, groups, blocks, 1}};
  const double* shape = shapes[i64(which["recipe"]) % 6];
  for (const Axis axis : {Axis::scale_rows_a, Axis::scale_columns_a, Axis::scale_rows_b, Axis::scale_columns_b})
    which[name(axis)] = *shape++;
}

/// Each of the tiles for more than 128 rows that narrow_sm90 (2) and the other variants for Hopper (3) have, by the k of the axis.
static void derive_candidate(Case& which) {
  struct Tile {
    double axis;
    const char *narrow, *other;
  };
  constexpr Tile kTiles[] = {{0, "64x48", "swap_ab_sm90:64x64_two"},
                             {1, "64x64", "swap_ab_sm90:128x64"},
                             {127, "64x96", "warp_specialised_sm90:128x144"},
                             {128, "64x128", "warp_specialised_sm90:128x160"},
                             {129, "64x192", "warp_specialised_sm90:128x176"},
                             {130, "64x48", "warp_specialised_sm90:128x192"},
                             {256, "64x96", "warp_specialised_sm90:128x192_pair"},
                             {1000, "64x192", "swap_ab_sm90:128x64_parts2"},
                             {4097, "64x128", "swap_ab_sm90:64x64_two_parts4"}};
  const bool narrow = which["narrow"] == 2;
  for (const Tile& tile : kTiles)
    if (which["k"] == tile.axis) {
      const std::string name = narrow ? std::string("narrow_sm90:") + tile.narrow : tile.other;
      which["variant"] = variant_index("gemm.scaled", name);
      if (which["recipe"] == 1 && name.starts_with("warp")) which["recipe"] = 0;  // whose tile of 128 columns the other cases meet
      if (name.find("parts") != std::string::npos) which["batch_invariant"] = 0;
    }
  which["m"] += 129;
  if (which["n"] == 0) which["n"] = 200;
  which["n"] = double(round_up(i64(which["n"]), i64(8)));
  which["k"] = std::max<double>(which["k"], 1.0);
  for (const char* pad : {"a.pad", "out.pad", "c.pad"}) which[pad] = which[pad] != 0 && pad[0] != 'a' ? 8 : 0;
}

/// a.pad 0 makes the rows of a and b multiples of 16 bytes. What is compiled in is not varied with everything, or most of a check would be
/// compiles.
static void derive(Case& which) {
  // Wide enough for a pair of tiles one above the other
  if (which["n"] == 8640) which["m"] = 131, which["k"] = 288, which["narrow"] = 0, which["a.pad"] = 0;
  derive_scales(which);
  if (which["narrow"] > 1) {
    derive_candidate(which);
    derive_scales(which);
  } else if (which["narrow"] != 0) {
    which["variant"] = variant_index("gemm.scaled", "narrow_sm90");
    which["m"] = std::min<double>(which["m"], 128.);
    // As wide as models have it, tiles of 24, 56, 112 and 256 columns, of 128 rows 72, of few columns of K then
    const double n = which["n"], of_64_rows = n == 65 ? 14784 : n == 127 ? 27136 : 0;
    const double wider = n == 129 ? 2904 : n == 264 ? 7168 : of_64_rows != 0 && which["m"] > 64 ? 8456 : of_64_rows;
    which["n"] = wider != 0 ? wider : double(round_up(i64(n), i64(8)));
    which["k"] = std::max(wider != 0 ? std::min<double>(which["k"], 200.) : double(which["k"]), 1.0);
    // In the place of one k of many, as many columns as are split in two for tiles of 48 and 64
    if (which["k"] == 130) {
      which["m"] = std::min<double>(which["m"], 64.);
      which["n"] = which["m"] <= 16 ? 3400 : 2904;
      which["k"] = 4096;
    }
    for (const char* pad : {"a.pad", "out.pad", "c.pad"}) which[pad] = which[pad] != 0 && pad[0] != 'a' ? 8 : 0;
    derive_scales(which);
  }
  const bool aligned = which["a.pad"] == 0;
  if (!aligned) which["bytes_a"] = 0, which["bytes_b"] = 1, which["out_f32"] = 0, which["b.pad"] = 16;
  const auto choose = [&](const char* tensor, const char* word, DType no, DType yes) { which[tensor] = int(which[word] != 0 ? yes : no); };
  choose("a.dtype", "bytes_a", DType::e4m3, DType::e5m2);
  choose("b.dtype", "bytes_b", DType::e4m3, DType::e5m2);
  choose("out.dtype", "out_f32", DType::bf16, DType::f32);
  choose("bias.dtype", "bias_f32", DType::bf16, DType::f32);
  if (which["c.present"] == 0) which["out.in_place"] = 0;
  choose("c.dtype", which["out.in_place"] != 0 ? "out_f32" : "c_f32", DType::bf16, DType::f32);
  if (aligned) {  // rows of whole 16 bytes
    for (const char* pad : {"a.pad", "b.pad"}) which[pad] = double(round_up(i64(which["k"]), i64(16)) - i64(which["k"]));
  }
}

static std::vector<Case> bench_shapes() {
  std::vector<Case> shapes;
  // Layers of DeepSeek-V3: q and kv down, q up, kv up, attention's output, gate and up of an expert, its down projection
  const double layers[6][2] = {{2112, 7168}, {24576, 1536}, {32768, 512}, {7168, 16384}, {4096, 7168}, {7168, 2048}};
  for (const double m : {1, 16, 64, 128, 4096})
    for (const auto& [n, k] : layers) shapes.push_back({{"m", m}, {"n", n}, {"k", k}});
  shapes.push_back({{"m", 8192}, {"n", 8192}, {"k", 8192}});
  return shapes;
}

QN_OP(scaled, ScaledArgs, "gemm.scaled")
    .doc("out[i, j] = sum_x scales_a(i, x) * scales_b(j, x) * a[i, x] * b[j, x] + bias[j] + c[i, j], summed in f32")
    .in("a", &A::a, "m k", {DType::e4m3, DType::e5m2})
    .in("scales_a", &A::scales_a, "scale_rows_a scale_columns_a", {DType::f32})
    .strided()
    .meaning("1x128: [m, ceil(k / 128)]; row: [m, 1]; tensor: [1, 1]; rows m or 1 with columns ceil(k / 128) or 1")
    .in("b", &A::b, "n k", {DType::e4m3, DType::e5m2})
    .meaning("a weight as frameworks store it: rows are outputs")
    .read_early()
    .in("scales_b", &A::scales_b, "scale_rows_b scale_columns_b", {DType::f32})
    .strided()
    .meaning(
        "1x128 by 128x128: [ceil(n / 128), ceil(k / 128)]; 1x128 by 1x128: [n, ceil(k / 128)]; row by column: [n, 1]; tensor by tensor: [1, 1]; "
        "rows n, ceil(n / 128) or 1 with columns ceil(k / 128) or 1, whatever scales_a has")
    .in("bias", &A::bias, "n", {DType::bf16, DType::f32})
    .optional()
    .in("c", &A::c, "m n", {DType::bf16, DType::f32})
    .optional()
    .out("out", &A::out, "m n", {DType::bf16, DType::f32})
    .may_be("c")
    .rows(Axis::m, Axis::scale_rows_a)
    .require(rejects_rows_a)
    .require(rejects_columns_a)
    .require(rejects_rows_b)
    .require(rejects_columns_b)
    .plan(plan)
    .reference<scaled_ref<double>, scaled_ref<OrderFree>>()
    .cost<cost>()
    .budget(budget)
    // Of FP8 the budget is of sums whose terms are alike, and infinite scales are none
    .unfit_all({DataKind::infinite, DataKind::tails, DataKind::edges})
    .cases(
        {{"m", {1, 0, 3, 15, 16, 17, 63, 64, 65, 131}},
         {"n", {128, 0, 1, 7, 63, 64, 65, 127, 129, 264, 8640}},
         {"k", {256, 0, 1, 127, 128, 129, 130, 1000, 4097}},
         {"recipe",
          {0, 1, 2, 3, 4, 5},
          "scales: 0 a's for each row, b's for 128 rows, of 128 columns both; 1 for each row of both, of 128 columns; 2 for each row, of all columns; 3 one for all; "
          "4 as 0, one for all of b; 5 what nobody asks for"},
         {"narrow",
          {0, 1, 0, 2, 3},
          "asks for the variant narrow_sm90 (1; 2: each of its tiles for more than 128 rows) or each of such tiles of the others for Hopper (3), and makes the case one that they take"},
         {"scales_a.transposed", {1, 0}},
         {"scales_b.transposed", {0, 1}},
         {"scales_a.pad", {0, 3}},
         {"scales_b.pad", {0, 1}},
         {"bytes_a", {0, 1}, "a is e4m3 (0) or e5m2 (1)"},
         {"bytes_b", {0, 1}, "b is e4m3 (0) or e5m2 (1)"},
         {"out_f32", {0, 1}, "out is f32, else bf16"},
         {"bias.present", {0, 1}},
         {"bias_f32", {0, 1}, "bias is f32, else bf16"},
         {"c.present", {0, 1}},
         {"c_f32", {0, 1}, "c is f32, else bf16"},
         {"a.pad", {0, 8, 4, 3}},
         {"out.pad", {0, 8, 5}},
         {"c.pad", {0, 8, 3}},
         {"batch_invariant", {0, 1}}},
        derive)
    .bench(bench_shapes());

}  // namespace quern::gemm
