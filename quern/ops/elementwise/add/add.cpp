// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/elementwise/add.h"

#include "quern/ops/elementwise/add/ref.h"
#include "quern/ops/elementwise/map_row/map_row.h"

namespace quern::elementwise {

using A = AddArgs;

/// The sum is rounded to f32, relative to itself, and the result once more.
static Budget budget(const Problem& p) {
  const DType dtype = p.tensors[0].dtype;
  return {.of_value = unit_roundoff(dtype) + (dtype == DType::f32 ? 0 : 0x1p-24)};
}

QN_OP(add, A, "elementwise.add")
    .doc("out = x + y")
    .in("x", &A::x, "tokens hidden", {DType::f32, DType::f16, DType::bf16})
    .in("y", &A::y, "tokens hidden", like("x"))
    .out("out", &A::out, "tokens hidden", like("x"))
    .may_be("x")
    .rows(Axis::tokens)
    .plan(plan_map<A, Map::add>)
    .reference<add_ref<double>, add_ref<OrderFree>>()
    .budget(budget)
    .cases(map_cases({{"y.pad", {0, 8, 1}}}))
    .bench({{{"tokens", 1}, {"hidden", 4096}}, {{"tokens", 4096}, {"hidden", 8192}}});

}  // namespace quern::elementwise
