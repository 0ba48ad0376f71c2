// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/activation/relu2_backward.h"

#include "quern/ops/activation/activate_row_backward/activate_row_backward.h"
#include "quern/ops/activation/relu2_backward/ref.h"

namespace quern::activation {

using A = Relu2BackwardArgs;

QN_OP(relu2_backward, A, "activation.relu2_backward")
    .doc("dx = dy f'(x), f'(x) = 2 max(x, 0)")
    .source("So et al., Primer: Searching for Efficient Transformers for Language Modeling, arXiv 2109.08668")
    .in("x", &A::x, "tokens intermediate", {DType::f32, DType::f16, DType::bf16})
    .in("dy", &A::dy, "tokens intermediate", like("x"))
    .meaning("the gradient of relu2's out")
    .out("dx", &A::dx, "tokens intermediate", like("x"))
    .may_be("dy")
    .rows(Axis::tokens)
    .plan(plan_backward_of<A, Function::relu2, Operands::alone>)
    .reference<relu2_backward_ref<double>, relu2_backward_ref<OrderFree>>()
    .generate<widen<A>>()
    .budget(relu2_backward_budget)
    .unfit_all({DataKind::infinite})  // what underflows in f32 is 0, and 0 times an infinity no number
    .cases(backward_cases())
    .bench(backward_bench());

}  // namespace quern::activation
