// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/activation/silu_backward.h"

#include "quern/ops/activation/activate_row_backward/activate_row_backward.h"
#include "quern/ops/activation/silu_backward/ref.h"

namespace quern::activation {

using A = SiluBackwardArgs;

QN_OP(silu_backward, A, "activation.silu_backward")
    .doc("dx = dy f'(x), f'(x) = s + x s (1 - s), s = 1 / (1 + exp(-x))")
    .source("Elfwing et al., Sigmoid-Weighted Linear Units, arXiv 1702.03118")
    .in("x", &A::x, "tokens intermediate", {DType::f32, DType::f16, DType::bf16})
    .in("dy", &A::dy, "tokens intermediate", like("x"))
    .meaning("the gradient of silu's out")
    .out("dx", &A::dx, "tokens intermediate", like("x"))
    .may_be("dy")
    .rows(Axis::tokens)
    .plan(plan_backward_of<A, Function::silu, Operands::alone>)
    .reference<silu_backward_ref<double>, silu_backward_ref<OrderFree>>()
    .generate<widen<A>>()
    .budget(silu_backward_budget)
    .unfit_all({DataKind::infinite})  // what underflows in f32 is 0, and 0 times an infinity no number
    .cases(backward_cases())
    .bench(backward_bench());

}  // namespace quern::activation
