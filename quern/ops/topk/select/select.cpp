// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/topk/select.h"

#include "quern/ops/topk/select/ref.h"
#include "quern/ops/topk/select_row/select_row.h"

namespace quern::topk {

using A = SelectArgs;

static SelectParams params(const Call<A>& c) {
  const A& a = c.args;
  SelectParams p = row_params(a);
  p.out = static_cast<i32*>(a.indices.data), p.out_stride = a.indices.strides[0];
  p.values = a.values.data, p.values_stride = a.values.strides[0];
  return p;
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  return plan_rows<params, A>(p, device, p.attr(&A::sorted) ? Ending::by_value : Ending::by_index);
}

static Breach contract(const A& a, const Problem&) { return rows_contract(a); }
static void generate(A& a, const Case&, Random& random) { generate_rows(a.x, a.lengths, a.row_starts, random); }
static Cost cost(const Problem& p, const A& a) { return rows_cost(p, a, 4 + (a.values.present() ? size_of(p.dtype(&A::x)) : 0)); }

QN_OP(select, A, "topk.select")
    .doc("indices = those of the k largest of each row, of equal values the lowest; -1 where a row has fewer")
    .with(state_rows<A>)
    .with(state_k<A>)
    .attr("sorted", &A::sorted)
    .meaning("by descending value, equal ones by ascending index; else by ascending index")
    .out("indices", &A::indices, "rows k", {DType::i32})
    .out("values", &A::values, "rows k", like("x"))
    .optional()
    .meaning("-inf where the index is -1")
    .rows(axis_of("rows"))
    .require(sizes_fit<A>)
    .plan(plan)
    .reference<select_ref>()
    .generate<generate>()
    .contract<contract>()
    .cost<cost>()
    .exact(kWhyExact)
    .cases(rows_cases({{"sorted", {true, false}}, {"values.present", {true, false}}, {"indices.pad", {0, 1}}}))
    .bench({{{"rows", 1}, {"length", 128256}, {"k", 2048}, {"lengths.present", 0}},
            {{"rows", 64}, {"length", 128256}, {"k", 2048}, {"lengths.present", 0}},
            {{"rows", 256}, {"length", 128256}, {"k", 2048}, {"lengths.present", 0}},
            {{"rows", 64}, {"length", 128256}, {"k", 50}, {"lengths.present", 0}}});

}  // namespace quern::topk
