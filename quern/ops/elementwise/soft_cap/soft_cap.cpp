// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/elementwise/soft_cap.h"

#include "quern/ops/elementwise/map_row/map_row.h"
#include "quern/ops/elementwise/soft_cap/ref.h"

namespace quern::elementwise {

using A = SoftCapArgs;

static Rejection cap_fits(const Problem& p) {
  const float cap = p.attr(&A::cap);
  return cap >= 1e-30f && cap <= 1e30f ? Rejection{} : Rejection{"cap", cap, "a number from 1e-30 to 1e30"};
}

/// One rounding. The kit's tanh is within 2^-20.9 of itself; its argument is a rounded quotient, whose relative error tanh never
/// enlarges, and the product rounds: 2^-20.9 + 2^-23 is below 2^-20.6. A quotient below 2^-126 is rounded by 2^-150, times cap.
static Budget budget(const Problem& p) {
  return {.of_value = unit_roundoff(p.tensors[0].dtype) + 0x1.53p-21, .absolute = 0x1p-149 * double(p.attr(&A::cap))};
}

QN_OP(soft_cap, A, "elementwise.soft_cap")
    .doc("out = cap * tanh(x / cap)")
    .source("Gemma Team, Gemma 2: Improving Open Language Models at a Practical Size, arXiv 2408.00118")
    .in("x", &A::x, "tokens hidden", {DType::f32, DType::f16, DType::bf16})
    .out("out", &A::out, "tokens hidden", like("x"))
    .may_be("x")
    .attr("cap", &A::cap)
    .meaning("bound of the results, from 1e-30 to 1e30")
    .require(cap_fits)
    .rows(Axis::tokens)
    .plan(plan_map<A, Map::soft_cap>)
    .reference<soft_cap_ref<double>, soft_cap_ref<OrderFree>>()
    .budget(budget)
    .cases(map_cases({{"cap", {30.0, 1.0, 0.25}}}))
    .bench({{{"tokens", 1}, {"hidden", 4096}}, {{"tokens", 4096}, {"hidden", 8192}}});

}  // namespace quern::elementwise
