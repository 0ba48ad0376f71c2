// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/k_grouped.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "quern/op/variants.h"
#include "quern/ops/gemm/grouped/plan.h"
#include "quern/ops/gemm/k_grouped/contract.h"
#include "quern/ops/gemm/k_grouped/plan.h"
#include "quern/ops/gemm/k_grouped/ref.h"

namespace quern::gemm {

using A = KGroupedArgs;

static const jit::Kernel<KGroupedSpansConfig, KGroupedSpansParams> spans{"quern/ops/gemm/k_grouped/spans.cuh", "k_grouped_spans"};
static const jit::Kernel<DenseConfig, KGroupedDenseParams> mma_ring{"quern/ops/gemm/k_grouped/portable/mma_ring.cuh", "k_grouped_mma_ring"};
static const jit::Kernel<ScaledConfig, KGroupedScaledParams> scaled_mma_ring{"quern/ops/gemm/k_grouped/portable/scaled_mma_ring.cuh",
                                                                             "k_grouped_scaled_mma_ring"};

// ---- requirements ----

static Rejection rejects_columns(const Problem& p) {
  const bool indptr = p.tensor(&A::k_indptr).present, sizes = p.tensor(&A::k_sizes).present;
  if (!indptr && !sizes) return {"k_indptr", "absent", "one of k_indptr and k_sizes"};
  if (indptr && sizes) return {"k_sizes", "given", "none beside k_indptr"};
  if (p.attr(&A::alignment) < 1) return {"alignment", p.attr(&A::alignment), "at least {}", 1};
  // Columns are counted in 31 bits, as what says which columns a group has is i32
  if (p[Axis::k] >= (i64(1) << 31)) return {"k", p[Axis::k], "below 2^31", 0};
  if (p[Axis::groups] >= (i64(1) << 24)) return {"groups", p[Axis::groups], "below 2^24", 0};
  return {};
}

static Rejection rejects_layout(const Problem& p) {
  const TensorFacts &a = p.tensor(&A::a), &b = p.tensor(&A::b);
  const bool scaled = is_scaled<A>(p);
  if (scaled && (a.transposed || b.transposed))
    return {"operands along M or N", a.transposed + b.transposed, "{} with 8 bits: `a` and `b` K-major", 0};
  if (!p.attr(&A::packed)) return {};
  if (!scaled) return {"packed", 1, "{} with 16 bits", 0};
  if (!a.contiguous || !b.contiguous) return {"contiguous operands", a.contiguous + b.contiguous, "{} with packed: `a` and `b`", 2};
  return {};
}

/// f32, or 16 bits: those of a, or bf16.
static Rejection rejects_result(const Problem& p, const char* subject, DType dtype) {
  const DType narrow = is_scaled<A>(p) ? DType::bf16 : p.dtype(&A::a);
  if (dtype == DType::f32 || dtype == narrow) return {};
  return {subject, name(dtype), narrow == DType::bf16 ? "f32 or bf16 with this dtype of `a`" : "f32 or f16 with this dtype of `a`"};
}
static Rejection rejects_results(const Problem& p) {
  if (const Rejection r = rejects_result(p, "out", p.dtype(&A::out))) return r;
  return p.tensor(&A::c).present ? rejects_result(p, "c", p.dtype(&A::c)) : Rejection{};
}

// ---- which columns a group has ----

static KGroupedOperand operand_of(const Call<A, KGroupedColumns>& c, bool of_a) {
  const TensorView& v = of_a ? c.args.a : c.args.b;
  const Major major = major_of(of_a ? c.problem.tensor(&A::a) : c.problem.tensor(&A::b));
  const i64 step = c.args.packed ? v.shape[0] : major == Major::mn ? v.strides[1] : 1;
  return {k_grouped_map(c, of_a, of_a ? c.choice.rows_a : c.choice.rows_b), v.data, step * size_of(v.dtype), major, c.args.packed};
}

static KGroupedSpansParams spans_params(const Call<A, KGroupedColumns>& c) {
  const bool maps = bool(c.choice.maps), sizes = c.args.k_sizes.present();
  return {.a = maps ? operand_of(c, true) : KGroupedOperand{},
          .b = maps ? operand_of(c, false) : KGroupedOperand{},
          .given = sizes ? c.args.k_sizes.data : c.args.k_indptr.data,
          .spans = c.region(c.choice.spans),
          .maps = c.region(c.choice.maps),
          .sizes = sizes,
          .groups = i32(c.problem[Axis::groups]),
          .k = i32(c.problem[Axis::k]),
          .unit = i32(min_of<i64>(k_grouped_unit(c.problem), 0x7fffffff))};
}

KGroupedSpans add_k_grouped_spans(Plan& plan, const Problem& p, const DeviceInfo& device, i32 rows_a, i32 rows_b) {
  constexpr i32 kThreads = 128;
  const i64 groups = p[Axis::groups], warps = kThreads / 32;
  const bool maps = rows_a > 0;
  KGroupedColumns columns{{}, {}, rows_a, rows_b};
  if (maps) columns.maps = plan.scratch("maps", k_grouped_maps_bytes(groups));
  columns.spans = plan.scratch("spans", 8 * groups);
  plan.launch<spans_params>(spans, {kThreads, maps},
                            {.x = maps ? max_of<i64>(1, min_of<i64>(device.sms, ceil_div(groups, warps))) : 1,
                             .smem = maps ? i32(warps * sizeof(TensorMap)) : 0,
                             .pdl = p.pdl},
                            columns);
  return {columns, device.arch.number >= 90};  // its blocks are scheduled while this one runs
}

// ---- variant portable ----

/// The most elements of a and b that a copy may take, whichever columns a group has.
static i32 vector_of(const Problem& p) {
  i32 vector = min_of(p.vector(&A::a), p.vector(&A::b));
  const bool k_major = !p.tensor(&A::a).transposed || !p.tensor(&A::b).transposed;
  while (k_major && k_grouped_unit(p) % vector != 0) vector /= 2;
  return vector;
}

/// Elements by which a group begins later for each column before it.
static i64 column_step(const Call<A>& c, const TensorView& v, bool transposed) {
  return c.args.packed ? v.shape[0] : transposed ? v.strides[1] : 1;
}

static KGroupedDenseParams dense_params(const Call<A, KGroupedColumns>& c) {
  const A& a = c.args;
  const Problem& p = c.problem;
  const bool a_transposed = p.tensor(&A::a).transposed, b_transposed = p.tensor(&A::b).transposed;
  return {.gemm = {.a = a.a.data,
                   .b = a.b.data,
                   .bias = nullptr,
                   .out = a.out.data,
                   .partials = nullptr,
                   .a_stride = a.a.strides[a_transposed],
                   .b_stride = a.b.strides[b_transposed],
                   .out_stride = a.out.strides[1],
                   .partial_stride = 0,
                   .m = p[Axis::m],
                   .n = p[Axis::n],
                   .k = 0,
                   .split_k = 0,
                   .bias_dtype = DType::f32,
                   .out_alignment = p.tensor(&A::out).alignment,
                   .c = c_of_first(c)},
          .spans = c.region(c.choice.spans),
          .a_column = column_step(c, a.a, a_transposed),
          .b_column = column_step(c, a.b, b_transposed),
          .out_group = group_bytes(a.out),
          .c_group = a.c.present() ? group_bytes(a.c) : 0,
          .groups = i32(p[Axis::groups])};
}

static KGroupedScaledParams scaled_params(const Call<A, KGroupedColumns>& c) {
  const A& a = c.args;
  const Problem& p = c.problem;
  return {.gemm = {.a = a.a.data,
                   .b = a.b.data,
                   .bias = nullptr,
                   .out = a.out.data,
                   .scales_a = scales_of_first(a.scales_a, kScaleARow),
                   .scales_b = scales_of_first(a.scales_b, kScaleARow),
                   .c = c_of_first(c),
                   .a_stride = a.a.strides[0],
                   .b_stride = a.b.strides[0],
                   .out_stride = a.out.strides[1],
                   .m = p[Axis::m],
                   .n = p[Axis::n],
                   .k = 0,
                   .bias_dtype = DType::f32,
                   .out_alignment = p.tensor(&A::out).alignment},
          .spans = c.region(c.choice.spans),
          .a_column = column_step(c, a.a, false),
          .b_column = column_step(c, a.b, false),
          .out_group = group_bytes(a.out),
          .c_group = a.c.present() ? group_bytes(a.c) : 0,
          .groups = i32(p[Axis::groups]),
          .packed = a.packed};
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  const i64 m = p[Axis::m], n = p[Axis::n], groups = p[Axis::groups];
  const i32 vector = vector_of(p);
  Plan plan;
  const auto [columns, pdl] = add_k_grouped_spans(plan, p, device);
  const auto grid = [&, pdl = pdl](i32 tile_m, i32 tile_n, i32 smem) {
    const i64 tiles = groups * ceil_div<i64>(m, tile_m) * ceil_div<i64>(n, tile_n);
    return Grid{.x = max_of<i64>(1, min_of<i64>(2 * device.sms, tiles)), .smem = smem, .pdl = pdl};
  };
  if (is_scaled<A>(p)) {
    const ScaledConfig c = grouped_config(m, p.dtype(&A::a), p.dtype(&A::b), p.dtype(&A::out), vector);
    plan.launch<scaled_params>(scaled_mma_ring, c, grid(c.tile_m, c.tile_n, grouped_smem(c)), columns);
  } else {
    DenseConfig c = grouped_config(m, p.dtype(&A::a), p.dtype(&A::out), vector);
    c.has_c = p.tensor(&A::c).present;
    c.a_major = major_of(p.tensor(&A::a)), c.b_major = major_of(p.tensor(&A::b));
    plan.launch<dense_params>(mma_ring, c, grid(c.tile_m, c.tile_n, grouped_smem(c)), columns);
  }
  return plan;
}

// ---- what checks and benchmarks know ----

/// As gemm.dense's and gemm.scaled's of all columns, c included. But a group may have one sum of 128 columns alone, and its error where
/// wgmma cuts off does not average with others: it is 2^-12 of the terms (scaled_budget) times the partial sums over their usual size,
/// of which 4 is met among a hundred thousand elements.
static Budget budget(const Problem& p) {
  const bool portable = is_of_variant(p, "portable"), scaled = is_scaled<A>(p);
  Budget all = grouped_budget(p.dtype(&A::out), scaled, p[Axis::k], portable);
  if (scaled && !portable) all.of_magnitude += 0x1p-10;
  return all;
}

/// Each operand once: columns that are of a group, their scales, out and c.
static Cost cost(const Problem& p, const A& a) {
  const double m = double(p[Axis::m]), n = double(p[Axis::n]), results = m * n * double(p[Axis::groups]);
  double columns = 0, blocks = 0;
  for (const ColumnSpan& span : columns_of(a))
    columns += double(span.second - span.first), blocks += std::ceil(double(span.second - span.first) / kScaledGroup);
  const double scales = is_scaled<A>(p) ? 4 * (m + n) * blocks : 0, c = p.tensor(&A::c).present ? results * size_of(p.dtype(&A::c)) : 0;
  return {
      .bytes = (m + n) * columns * size_of(p.dtype(&A::a)) + scales + results * size_of(p.dtype(&A::out)) + c + 4 * double(p[Axis::groups]),
      .flops = 2 * m * n * columns};
}

// ---- cases ----

/// Bounds of the groups, which begin at multiples of `unit`: about as many columns for all, all for one, or 0 to 2 units each.
static std::vector<i64> random_bounds(i64 first, i64 k, i64 groups, i64 unit, i64 spread, Random& random) {
  std::vector<i64> bounds{first};
  const i64 chosen = random.below(groups);
  for (i64 g = 0; g < groups; ++g) {
    const i64 left = k - bounds.back();
    const double even = std::ceil(double(left) / double(groups - g) * (1 + 0.3 * random.uniform()));
    const i64 wanted = spread == 1 ? (g == chosen ? k : 0) : spread == 2 ? unit * random.below(3) : round_up(i64(even), unit);
    bounds.push_back(bounds.back() + std::min(wanted, left));
  }
  return bounds;
}

/// Fills columns of an operand and of its scales with NaN: of flat memory (packed) the elements of those columns.
static void poison(const TensorView& x, const TensorView& scales, bool packed, i64 begin, i64 end) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const i64 rows = x.shape[0], k = x.shape[1];
  for (i64 i = 0; i < rows; ++i) {
    for (i64 column = begin; column < end; ++column) {
      const i64 flat = rows * begin + i * (end - begin) + column - begin, at[] = {packed ? flat / k : i, packed ? flat % k : column};
      store_element(x, at, nan);
    }
    for (i64 block = ceil_div<i64>(begin, kScaledGroup); scales.present() && block < ceil_div<i64>(end, kScaledGroup); ++block)
      store_element(scales, std::array<i64, 2>{i, block}.data(), nan);
  }
}

/// Words of the cases: spread as random_bounds has it, 3 contents that break the rules; poison 1 makes columns of no group NaN, 2 those of
/// one group as well.
static void generate(A& a, const Case& which, Random& random) {
  const auto word = [&](const char* name) { return which.contains(name) ? i64(which.at(name)) : 0; };
  const bool scaled = a.scales_a.present(), sizes = a.k_sizes.present();
  if (!sizes && !a.k_indptr.present()) return;
  i32* const to = static_cast<i32*>(sizes ? a.k_sizes.data : a.k_indptr.data);
  const i64 groups = a.out.shape[0], k = a.a.shape[1], alignment = max_of(a.alignment, 1),
            unit = scaled ? round_up<i64>(alignment, kScaledGroup) : alignment;
  const i64 first = sizes || random.below(3) != 0 ? 0 : random.below(k / unit + 1) * unit;
  const std::vector<i64> bounds = random_bounds(first, k, groups, unit, word("spread"), random);
  for (i64 g = 0; g < groups + !sizes; ++g) to[g] = i32(sizes ? bounds[size_t(g) + 1] - bounds[size_t(g)] : bounds[size_t(g)]);
  for (i64 g = 0; word("spread") == 3 && g < groups + !sizes; ++g) {
    // Seldom beyond the end, as no group behind has columns then
    const i32 any = i32(random.below(k + 1)), values[] = {-1, -100, any, any, any, any, any, random.below(2) ? i32(k + 1) : 0x7fffffff};
    if (random.below(3) == 0) to[g] = values[random.below(8)];
  }
  if (word("poison") == 0 || word("proof") != 0 || groups == 0) return;
  const std::vector<ColumnSpan> spans = columns_of(a);
  const ColumnSpan& one = spans[size_t(random.below(groups))];
  for (const auto& [x, scales] : {std::pair(a.a, a.scales_a), std::pair(a.b, a.scales_b)}) {
    poison(x, scales, a.packed, 0, spans.front().first);
    poison(x, scales, a.packed, spans.back().second, k);
    if (word("poison") == 2) poison(x, scales, a.packed, one.first, one.second);
  }
}

/// Words of the cases: hopper asks for warp_specialised_sm90 (1), or its wide tiles (2), and makes the case one that it takes; bits8
/// chooses between 16 and 8 bits, second the other type (f16, e5m2 for a), out_16 results of 16 bits; sizes between k_indptr and k_sizes;
/// a.pad 0 makes the rows of a and b multiples of 16 bytes. What is compiled in is not varied with everything, or most of a check would be
/// compiles.
static void derive(Case& which) {
  if (which.contains("a.dtype")) which["bits8"] = size_of(DType(int(which["a.dtype"]))) == 1;  // the words of a call
  const bool scaled = which["bits8"] != 0, hopper = which["hopper"] != 0;
  if (scaled) which["a.transposed"] = which["b.transposed"] = 0;
  else which["packed"] = 0;
  if (hopper) {
    which["variant"] = variant_index("gemm.k_grouped", "warp_specialised_sm90");
    which["n"] = double(round_up(i64(which["n"]), i64(8)));
    for (const char* word : {"k", "groups"}) which[word] = std::max<double>(which[word], 1.0);
    which["a.pad"] = 0;
    for (const char* pad : {"out.pad", "c.pad"}) which[pad] = which[pad] == 0 ? 0 : 8;
    if (which["packed"] != 0) which["k"] = double(round_up(i64(which["k"]), i64(16)));
    if (which["hopper"] == 2) {  // one tile along m and two along n of 66 groups are a wave of 132
      which["groups"] = 66, which["m"] = std::min<double>(which["m"], 128.0);
      which["n"] = scaled ? 320 : which["out_16"] != 0 ? 384 : 512;
    }
    if (!scaled && (which["a.transposed"] == 0 || which["b.transposed"] == 0))
      which["alignment"] = 8 * std::max(1.0, std::ceil(which["alignment"] / 8));
  }
  if (which["k"] <= 1) which["a.transposed"] = which["b.transposed"] = 0;  // columns of one element are rows
  const bool aligned = which["a.pad"] == 0;
  if (!aligned) which["second"] = which["out_16"] = 0;
  const bool second = which["second"] != 0;
  which["a.dtype"] = int(scaled ? second ? DType::e5m2 : DType::e4m3 : second ? DType::f16 : DType::bf16);
  which["b.dtype"] = scaled ? int(DType::e4m3) : int(which["a.dtype"]);
  const int narrow = scaled ? int(DType::bf16) : int(which["a.dtype"]), wide = int(DType::f32);
  which["out.dtype"] = which["out_16"] != 0 ? narrow : wide;
  if (which["c.present"] == 0) which["out.in_place"] = 0;
  which["c.dtype"] = which["out.in_place"] != 0 ? int(which["out.dtype"]) : which["out_16"] != 0 ? wide : narrow;
  which["scales_a.present"] = which["scales_b.present"] = scaled;
  which["k_indptr.present"] = which["sizes"] == 0, which["k_sizes.present"] = which["sizes"] != 0;
  const i64 unit = scaled ? 16 : 8;
  const auto to_unit = [&](const char* dense) { return double(round_up(i64(which[dense]), unit) - i64(which[dense])); };
  if (aligned)
    which["a.pad"] = to_unit(which["a.transposed"] != 0 ? "m" : "k"), which["b.pad"] = to_unit(which["b.transposed"] != 0 ? "n" : "k");
  else which["b.pad"] = double(unit);
  if (which["packed"] != 0) which["a.pad"] = which["b.pad"] = 0;
}

/// The shapes with which DeepGEMM tests its own.
static std::vector<Case> bench_shapes() {
  std::vector<Case> shapes;
  for (const double bits8 : {0, 1})
    for (const auto& [groups, m, n, k] :
         {std::array{4., 4096., 7168., 8192.}, {4., 7168., 2048., 8192.}, {8., 4096., 7168., 4096.}, {8., 7168., 2048., 4096.}})
      for (const double c : {0, 1}) {
        if (c != 0 && m == 4096) continue;
        shapes.push_back({{"groups", groups},
                          {"m", m},
                          {"n", n},
                          {"k", groups * k},
                          {"alignment", 128},
                          {"sizes", 1},
                          {"poison", 0},
                          {"bits8", bits8},
                          {"a.transposed", 1 - bits8},
                          {"b.transposed", 1 - bits8},
                          {"scales_b.transposed", bits8}});
        if (c != 0) shapes.back()["c.present"] = 1;
      }
  return shapes;
}

QN_OP(k_grouped, A, "gemm.k_grouped")
    .doc(
        "out[g, i, j] = c[g, i, j] + sum over the columns x of group g of a[i, x] * b[j, x], in f32; 8 bits: times scales_a[i, x / 128] * scales_b[j, x / 128]")
    .in("a", &A::a, "m k", {DType::bf16, DType::f16, DType::e4m3, DType::e5m2})
    .either_major()
    .in("b", &A::b, "n k", like("a", {DType::e4m3, DType::e5m2}))
    .either_major()
    .in("scales_a", &A::scales_a, "m ceil_div(k,128)", {DType::f32})
    .optional()
    .strided()
    .meaning("given exactly where a and b are of 8 bits")
    .in("scales_b", &A::scales_b, "n ceil_div(k,128)", {DType::f32})
    .optional()
    .strided()
    .in("k_indptr", &A::k_indptr, "groups+1", {DType::i32})
    .optional()
    .values(generated())
    .contents(each_within("0", "k").ascending())
    .meaning(
        "group g has the columns from k_indptr[g], a multiple of alignment, with 8 bits also of 128, to k_indptr[g + 1]; cut to [0, k] and rounded down to that")
    .in("k_sizes", &A::k_sizes, "groups", {DType::i32})
    .optional()
    .values(generated())
    .contents(each_within("0", "k"))
    .meaning("in the place of k_indptr: how many columns each group has")
    .in("c", &A::c, "groups m n", {DType::f32, DType::bf16, DType::f16})
    .optional()
    .meaning("out itself, to accumulate into it")
    .out("out", &A::out, "groups m n", {DType::f32, DType::bf16, DType::f16})
    .may_be("c")
    .meaning("f32, or the dtype of a; with 8 bits f32 or bf16")
    .attr("alignment", &A::alignment)
    .meaning("multiple of columns at which each group begins; 8 bits: of 128 as well")
    .attr("packed", &A::packed)
    .meaning("the memory of a and b has group by group a dense matrix of its columns; 8 bits only")
    .columns(Axis::n, &A::packed)
    .require(rejects_bits<A>)
    .require(rejects_scales<A>)
    .require(rejects_columns)
    .require(rejects_layout)
    .require(rejects_results)
    .plan(plan)
    .reference<k_grouped_ref<double>, k_grouped_ref<OrderFree>>()
    .generate<generate>()
    .contract<k_grouped_contract>()
    .broken_contents("spread", 3)
    .cost<cost>()
    .budget(budget)
    // Of FP8 the budget is of sums whose terms are alike, and infinite scales are none
    .unfit_all({DataKind::infinite, DataKind::tails, DataKind::edges})
    .cases({{"m", {64, 0, 1, 7, 16, 17, 127, 129, 263}},
            {"n", {128, 0, 1, 8, 61, 65, 129, 264}},
            {"k", {256, 0, 1, 33, 127, 129, 640, 1009}},
            {"groups", {4, 0, 1, 3, 37}},
            {"sizes", {0, 1}, "columns of groups are said by k_indptr (0) or k_sizes (1)"},
            {"spread",
             {0, 1, 2, 3},
             "columns: about as many for each group (0), all of one (1), 0 to 2 units (2), contents that break the rules (3)"},
            {"poison", {1, 0, 2}, "columns of no group are NaN (1), those of one group too (2)"},
            {"hopper",
             {0, 1, 2},
             "asks for the variant warp_specialised_sm90 (1) or its widest tiles (2), and makes the case one that it takes"},
            {"bits8", {1, 0}, "a and b are of 8 bits, with scales, else of 16"},
            {"second", {0, 1}, "the other type: a is e5m2 of 8 bits, a and b are f16 of 16"},
            {"out_16", {0, 1}, "out is of 16 bits"},
            {"packed", {0, 1}},
            {"alignment", {1, 8, 3, 130}},
            {"c.present", {0, 1}},
            {"a.transposed", {0, 1}},
            {"b.transposed", {0, 1}},
            {"scales_a.transposed", {1, 0}},
            {"scales_a.pad", {0, 3}},
            {"scales_b.transposed", {0, 1}},
            {"a.pad", {0, 8, 4, 3}},
            {"out.pad", {0, 8, 5}},
            {"out.swap", {0, 1}},
            {"c.pad", {0, 8, 3}}},
           derive)
    .bench(bench_shapes());

}  // namespace quern::gemm
