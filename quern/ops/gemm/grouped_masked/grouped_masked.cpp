// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/grouped_masked.h"

#include <algorithm>

#include "quern/op/variants.h"
#include "quern/ops/gemm/grouped/plan.h"
#include "quern/ops/gemm/grouped/ref.h"

namespace quern::gemm {

using A = GroupedMaskedArgs;

static Budget budget(const Problem& p) {
  return grouped_budget(p.dtype(&A::out), is_scaled<A>(p), p[Axis::k], is_of_variant(p, "portable"));
}

static Rejection rejects_expected(const Problem& p) {
  if (p.attr(&A::expected_m) < 0) return {"expected_m", p.attr(&A::expected_m), "{} or more", 0};
  return {};
}

static Cost cost(const Problem& p, const A& a) {
  std::vector<i64> rows;
  for (const RowSpan& span : spans_of(a)) rows.push_back(span.second);
  return grouped_cost(sizes_of<A>(p), rows, p.dtype(&A::a), p.dtype(&A::out));
}

/// Where expected_m is 0 and spread too, any number of rows.
static void generate(A& a, const Case& which, Random& random) {
  const auto at = which.find("spread");
  const i64 spread = at == which.end() ? 0 : i64(at->second), groups = a.b.shape[0], max_m = a.a.shape[1], chosen = random.below(groups);
  for (i64 g = 0; g < groups; ++g) {
    i64 rows = a.expected_m > 0 ? i64(a.expected_m * (1 + 0.3 * random.uniform())) : random.below(max_m + 1);
    if (spread == 1) rows = g == chosen ? max_m : 0;
    if (spread == 2) rows = random.below(3);
    rows = std::min(rows, max_m);
    const i64 broken[] = {-1, -100, max_m + 1, 1 << 30};
    if (spread == 3 && random.below(2) == 0) rows = broken[random.below(4)];
    static_cast<i32*>(a.masked_m.data)[g] = i32(rows);
  }
}

static std::vector<Case> bench_shapes() {
  std::vector<Case> shapes;
  for (const double bits8 : {1, 0}) {
    shapes.push_back({{"groups", 1}, {"max_m", 4096}, {"expected_m", 1024}, {"n", 4096}, {"k", 7168}, {"bits8", bits8}});
    shapes.push_back({{"groups", 4}, {"max_m", 4096}, {"expected_m", 256}, {"n", 4096}, {"k", 7168}, {"bits8", bits8}});
    shapes.push_back({{"groups", 16}, {"max_m", 4096}, {"expected_m", 64}, {"n", 7168}, {"k", 2048}, {"bits8", bits8}});
    shapes.push_back({{"groups", 32}, {"max_m", 1024}, {"expected_m", 4}, {"n", 7168}, {"k", 2048}, {"bits8", bits8}});
  }
  return shapes;
}

QN_OP(grouped_masked, A, "gemm.grouped_masked")
    .doc(
        "out[g, i, j] = sum_x a[g, i, x] * b[g, j, x] for i < masked_m[g], in f32; 8 bits: times scales_a[g, i, x / 128] * scales_b[g, j / 128, x / 128]")
    .in("a", &A::a, "groups max_m k", {DType::bf16, DType::f16, DType::e4m3, DType::e5m2})
    .in("b", &A::b, "groups n k", like("a", {DType::e4m3, DType::e5m2}))
    .meaning("weights as frameworks store them: rows are outputs; with 16 bits also their transposes, [groups, k, n] in memory")
    .either_major()
    .read_early()
    .in("scales_a", &A::scales_a, "groups max_m ceil_div(k,128)", {DType::f32})
    .optional()
    .strided()
    .meaning("given exactly where a and b are of 8 bits")
    .in("scales_b", &A::scales_b, "groups ceil_div(n,128) ceil_div(k,128)", {DType::f32})
    .optional()
    .strided()
    .in("masked_m", &A::masked_m, "groups", {DType::i32})
    .values(generated())
    .contents(each_within("0", "max_m"))
    .meaning("rows of each group, cut to [0, max_m]; those behind them are not written")
    .out("out", &A::out, "groups max_m n", {DType::bf16, DType::f16, DType::f32})
    .attr("expected_m", &A::expected_m)
    .hint()
    .meaning("rows of a group on average, 0: not known, taken as max_m; it chooses the plan, and never the result of a variant")
    .columns(Axis::n)
    .require(rejects_bits<A>)
    .require(rejects_major<A>)
    .require(rejects_scales<A>)
    .require(rejects_rows<A>)
    .require(rejects_expected)
    .plan(plan_grouped<A>)
    .reference<grouped_masked_ref<double>, grouped_masked_ref<OrderFree>>()
    .generate<generate>()
    .broken_contents("spread", 3)
    .cost<cost>()
    .budget(budget)
    // Of FP8 the budget is of sums whose terms are alike, and infinite scales are none
    .unfit_all({DataKind::infinite, DataKind::tails, DataKind::edges})
    .cases(
        {{"max_m", {64, 0, 1, 15, 16, 17, 65, 129}},
         {"n", {128, 0, 1, 8, 63, 65, 129, 264}},
         {"k", {128, 0, 1, 33, 127, 129, 2300}},
         {"groups", {4, 0, 1, 3, 33, 70}},
         {"expected_m", {0, 1, 40}},
         {"spread",
          {0, 1, 2, 3},
          "rows: about expected_m for each group (0), all of one (1), 0 to 2 (2), numbers that break the rules (3)"},
         {"hopper",
          {0, 1, 2, 3, 4, 5, 6},
          "asks for the variant swap_ab_sm90 (1), warp_specialised_sm90 (2), its widest tiles (3) or, with 8 bits, its tallest (4), pairs of tiles (5) or a tail of narrower ones (6), and makes the case one that it takes"},
         {"bits8", {1, 0}, "a and b are of 8 bits, with scales, else of 16"},
         {"second", {0, 1}, "the other type: a is e5m2 of 8 bits, a and b are f16 of 16"},
         {"out_f32", {0, 1}, "out is f32"},
         {"scales_a.transposed", {1, 0}},
         {"scales_a.pad", {0, 3}},
         {"scales_b.transposed", {0, 1}},
         {"a.pad", {0, 8, 4, 3}},
         {"a.swap", {0, 1}},
         {"b.swap", {0, 1}},
         {"b.transposed", {0, 1}},
         {"out.swap", {0, 1}},
         {"out.pad", {0, 8, 5}}},
        [](Case& which) { derive_operands("gemm.grouped_masked", which); })
    .bench(bench_shapes());

}  // namespace quern::gemm
