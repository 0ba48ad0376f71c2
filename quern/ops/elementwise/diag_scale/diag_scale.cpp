// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/elementwise/diag_scale.h"

#include "quern/ops/elementwise/diag_scale/ref.h"
#include "quern/ops/elementwise/map_row/map_row.h"

namespace quern::elementwise {

using A = DiagScaleArgs;

QN_OP(diag_scale, A, "elementwise.diag_scale")
    .doc("out = diagonal x, each row of x times one number")
    .in("x", &A::x, "tokens hidden", {DType::f32, DType::f16, DType::bf16})
    .in("diagonal", &A::diagonal, "tokens", like("x"))
    .strided()
    .meaning("a factor a row")
    .out("out", &A::out, "tokens hidden", like("x"))
    .may_be("x")
    .rows(Axis::tokens)
    .backward("elementwise.diag_scale_backward", {{"dy", "out"}, {"dx", "x"}, {"ddiagonal", "diagonal"}})
    .plan(plan_map<A, Map::diag_scale>)
    .reference<diag_scale_ref<double>, diag_scale_ref<OrderFree>>()
    .budget(product_budget)
    .cases(map_cases({}))
    .bench({{{"tokens", 128}, {"hidden", 2048}},
            {{"tokens", 4096}, {"hidden", 2048}},
            {{"tokens", 4096}, {"hidden", 8192}},
            {{"tokens", 1048576}, {"hidden", 8}}});

}  // namespace quern::elementwise
