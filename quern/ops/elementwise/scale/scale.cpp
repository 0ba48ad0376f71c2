// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/elementwise/scale.h"

#include "quern/ops/elementwise/map_row/map_row.h"
#include "quern/ops/elementwise/scale/ref.h"

namespace quern::elementwise {

using A = ScaleArgs;

static Rejection factor_fits(const Problem& p) {
  const float factor = p.attr(&A::factor);
  if (factor - factor != 0) return {"factor", factor, "a finite number"};
  return {};
}

QN_OP(scale, A, "elementwise.scale")
    .doc("out = x * factor")
    .in("x", &A::x, "tokens hidden", {DType::f32, DType::f16, DType::bf16})
    .out("out", &A::out, "tokens hidden", like("x"))
    .may_be("x")
    .attr("factor", &A::factor)
    .meaning("what each element is multiplied by")
    .require(factor_fits)
    .rows(Axis::tokens)
    .plan(plan_map<A, Map::scale>)
    .reference<scale_ref<double>, scale_ref<OrderFree>>()
    .budget(product_budget)
    .cases(map_cases({{"factor", {0.3, -2.0, 1.0}}}))
    .bench({{{"tokens", 1}, {"hidden", 4096}}, {{"tokens", 4096}, {"hidden", 8192}}});

}  // namespace quern::elementwise
