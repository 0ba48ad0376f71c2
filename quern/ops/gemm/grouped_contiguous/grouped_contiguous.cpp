// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/grouped_contiguous.h"

#include <algorithm>
#include <cmath>

#include "quern/op/variants.h"
#include "quern/ops/gemm/grouped/plan.h"
#include "quern/ops/gemm/grouped/ref.h"

namespace quern::gemm {

using A = GroupedContiguousArgs;

i32 grouped_alignment() { return kGroupedAlignment; }

static Rejection rejects_layout(const Problem& p) {
  const bool rows = p.tensor(&A::group_of_row).present, ends = p.tensor(&A::group_ends).present, indptr = p.tensor(&A::m_indptr).present;
  if (!rows && !ends && !indptr) return {"group_of_row", "absent", "one of group_of_row, group_ends and m_indptr"};
  if (rows + ends + indptr > 1)
    return {indptr ? "m_indptr" : "group_ends", "given", rows ? "none beside group_of_row" : "none beside group_ends"};
  return {};
}
static Rejection rejects_alignment(const Problem& p) {
  if (p.attr(&A::alignment) < 1) return {"alignment", p.attr(&A::alignment), "at least {}", 1};
  return {};
}

static Budget budget(const Problem& p) {
  return grouped_budget(p.dtype(&A::out), is_scaled<A>(p), p[Axis::k], is_of_variant(p, "portable"));
}

static Cost cost(const Problem& p, const A& a) {
  std::vector<i64> rows;
  for (const RowSpan& span : spans_of(a)) rows.push_back(span.second - span.first);
  return grouped_cost(sizes_of<A>(p), rows, p.dtype(&A::a), p.dtype(&A::out));
}

/// The rows of a group follow each other, the first at a multiple of alignment.
static Breach contract(const A& a, const Problem& p) {
  if (!a.group_of_row.present()) return {};
  const Ref<> group_of_row(a.group_of_row);
  std::vector<i64> begins(static_cast<size_t>(p[Axis::groups]), -1);
  for (i64 row = 0, before = -1; row < p[Axis::m]; ++row) {
    const i64 group = group_of_row.index(row);
    if (group >= 0 && group != before) {
      const auto refused = [&](const std::string& why) {
        return Breach{"group_of_row", {row}, group, (before < 0 ? "-1: " : std::to_string(before) + " or -1: ") + why};
      };
      i64& begin = begins[size_t(group)];
      if (begin >= 0)
        return refused("group " + std::to_string(group) + " began at row " + std::to_string(begin) + ", and its rows follow each other");
      if (row % max_of(a.alignment, 1)) return refused("groups begin at multiples of alignment=" + std::to_string(a.alignment));
      begin = row;
    }
    before = group;
  }
  return {};
}

// ---- cases ----

/// Rows of each group, each group rounded up to `alignment` rows, by the case's word spread.
static std::vector<i64> random_rows(i64 m, i64 groups, i64 alignment, i64 spread, Random& random) {
  std::vector<i64> rows(static_cast<size_t>(groups));
  const i64 chosen = random.below(groups);
  i64 left = m;
  for (i64 g = 0; g < groups; ++g) {
    const double even = std::ceil(double(left) / double(groups - g) * (1 + 0.3 * random.uniform()));
    const i64 wanted = spread == 1 ? (g == chosen ? m : 0) : spread == 2 ? random.below(3) : i64(even);
    rows[size_t(g)] = std::min(wanted, left);
    left -= std::min(left, round_up(rows[size_t(g)], alignment));
  }
  return rows;
}

static void fill_group_of_row(A& a, bool broken, const std::vector<i64>& rows, Random& random) {
  i32* const of_row = static_cast<i32*>(a.group_of_row.data);
  const i64 m = a.a.shape[0], groups = a.b.shape[0];
  std::fill(of_row, of_row + m, -1);
  const bool backwards = random.below(2) != 0;  // groups come in any order
  i64 row = 0;
  for (i64 i = 0; i < groups; ++i) {
    const i64 g = backwards ? groups - 1 - i : i, count = rows[size_t(g)];
    if (count == 0) continue;
    std::fill(of_row + row, of_row + row + count, i32(g));
    row = round_up<i64>(row + count, a.alignment);
  }
  if (!broken) return;
  for (i64 begin = 0; begin < m; begin += a.alignment) {  // no group at all, or one that has its rows elsewhere
    const i32 values[] = {-1, -7, i32(groups), 1 << 30, i32(random.below(groups + 1))};
    if (random.below(3) == 0) std::fill(of_row + begin, of_row + std::min(m, begin + a.alignment), values[random.below(5)]);
  }
}

static void fill_bounds(A& a, bool broken, const std::vector<i64>& rows, Random& random) {
  const bool ends = a.group_ends.present();
  i32* const to = static_cast<i32*>(ends ? a.group_ends.data : a.m_indptr.data);
  const i64 m = a.a.shape[0], groups = a.b.shape[0];
  i64 row = ends ? 0 : random.below(3) == 0 ? random.below(m + 1) : 0;
  if (!ends) to[0] = i32(row);
  for (i64 g = 0; g < groups; ++g) {
    if (ends) row = round_up<i64>(row, a.alignment);
    row = std::min(m, row + rows[size_t(g)]);
    to[ends ? g : g + 1] = i32(row);
  }
  if (!broken) return;
  for (i64 g = 0; g < groups + (ends ? 0 : 1); ++g) {
    const i32 values[] = {-1, i32(m + 1), 1 << 30, i32(random.below(m + 1))};
    if (random.below(3) == 0) to[g] = values[random.below(4)];
  }
}

static void generate(A& a, const Case& which, Random& random) {
  const auto at = which.find("spread");
  const i64 spread = at == which.end() ? 0 : i64(at->second);
  const i64 alignment = a.m_indptr.present() ? 1 : max_of(a.alignment, 1);
  const std::vector<i64> rows = random_rows(a.a.shape[0], a.b.shape[0], alignment, spread, random);
  if (a.group_of_row.present()) fill_group_of_row(a, spread == 3, rows, random);
  else if (a.group_ends.present() || a.m_indptr.present()) fill_bounds(a, spread == 3, rows, random);
}

static void derive(Case& which) {
  derive_operands("gemm.grouped_contiguous", which);
  which["group_of_row.present"] = which["layout"] == 0;
  which["group_ends.present"] = which["layout"] == 1;
  which["m_indptr.present"] = which["layout"] == 2;
}

static std::vector<Case> bench_shapes() {
  std::vector<Case> shapes;
  for (const double bits8 : {1, 0}) {
    shapes.push_back({{"m", 35968}, {"groups", 4}, {"n", 4096}, {"k", 7168}, {"bits8", bits8}});
    shapes.push_back({{"m", 33792}, {"groups", 8}, {"n", 7168}, {"k", 2048}, {"bits8", bits8}});
    shapes.push_back({{"m", 2048}, {"groups", 128}, {"n", 1536}, {"k", 2048}, {"bits8", bits8}, {"layout", 2}});
  }
  return shapes;
}

QN_OP(grouped_contiguous, A, "gemm.grouped_contiguous")
    .doc(
        "out[i, j] = sum_x a[i, x] * b[g, j, x] for the rows i of each group g, in f32; 8 bits: times scales_a[i, x / 128] * scales_b[g, j / 128, x / 128]")
    .in("a", &A::a, "m k", {DType::bf16, DType::f16, DType::e4m3, DType::e5m2})
    .in("b", &A::b, "groups n k", like("a", {DType::e4m3, DType::e5m2}))
    .meaning("weights as frameworks store them: rows are outputs; with 16 bits also their transposes, [groups, k, n] in memory")
    .either_major()
    .read_early()
    .in("scales_a", &A::scales_a, "m ceil_div(k,128)", {DType::f32})
    .optional()
    .strided()
    .meaning("given exactly where a and b are of 8 bits")
    .in("scales_b", &A::scales_b, "groups ceil_div(n,128) ceil_div(k,128)", {DType::f32})
    .optional()
    .strided()
    .in("group_of_row", &A::group_of_row, "m", {DType::i32})
    .optional()
    .values(generated())
    .contents(each_below("groups").or_minus_one())
    .meaning(
        "group of each row, -1: none; each group begins at a multiple of alignment: only the first row of each alignment rows is looked at, and the last ones of a group")
    .in("group_ends", &A::group_ends, "groups", {DType::i32})
    .optional()
    .values(generated())
    .contents(each_within("0", "m").ascending())
    .meaning("in the place of group_of_row: group g has the rows from group_ends[g - 1], rounded up to alignment, to group_ends[g]")
    .in("m_indptr", &A::m_indptr, "groups+1", {DType::i32})
    .optional()
    .values(generated())
    .contents(each_within("0", "m").ascending())
    .meaning("in the place of group_of_row: group g has the rows from m_indptr[g] to m_indptr[g + 1], wherever they begin; cut to [0, m]")
    .out("out", &A::out, "m n", {DType::bf16, DType::f16, DType::f32})
    .meaning("rows of no group are not written")
    .attr("alignment", &A::alignment)
    .meaning("multiple of rows at which each group of group_of_row and group_ends begins")
    .columns(Axis::n)
    .require(rejects_bits<A>)
    .require(rejects_major<A>)
    .require(rejects_scales<A>)
    .require(rejects_layout)
    .require(rejects_alignment)
    .require(rejects_rows<A>)
    .plan(plan_grouped<A>)
    .reference<grouped_contiguous_ref<double>, grouped_contiguous_ref<OrderFree>>()
    .generate<generate>()
    .contract<contract>()
    .broken_contents("spread", 3)
    .cost<cost>()
    .budget(budget)
    // Of FP8 the budget is of sums whose terms are alike, and infinite scales are none
    .unfit_all({DataKind::infinite, DataKind::tails, DataKind::edges})
    .cases(
        {{"m", {64, 0, 1, 15, 16, 17, 129, 300}},
         {"n", {128, 0, 1, 8, 63, 65, 129, 264}},
         {"k", {128, 0, 1, 33, 127, 129, 2300}},
         {"groups", {4, 0, 1, 3, 33, 70}},
         {"layout", {0, 1, 2}, "rows of groups are said by group_of_row (0), group_ends (1) or m_indptr (2)"},
         {"spread", {0, 1, 2, 3}, "rows: about as many for each group (0), all of one (1), 0 to 2 (2), contents that break the rules (3)"},
         {"alignment", {16, 1, 7, 64, 128}},
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
         {"b.swap", {0, 1}},
         {"b.transposed", {0, 1}},
         {"out.pad", {0, 8, 5}}},
        derive)
    .bench(bench_shapes());

}  // namespace quern::gemm
