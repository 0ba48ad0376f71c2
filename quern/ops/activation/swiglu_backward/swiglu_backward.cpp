// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/activation/swiglu_backward.h"

#include "quern/ops/activation/activate_row_backward/activate_row_backward.h"
#include "quern/ops/activation/swiglu_backward/ref.h"

namespace quern::activation {

using A = SwigluBackwardArgs;

QN_OP(swiglu_backward, A, "activation.swiglu_backward")
    .doc("dx = dy silu(gate), dgate = dy x f'(gate), f'(g) = s + g s (1 - s), s = 1 / (1 + exp(-g))")
    .source("Shazeer, GLU Variants Improve Transformer, arXiv 2002.05202")
    .in("x", &A::x, "tokens intermediate", {DType::f32, DType::f16, DType::bf16})
    .meaning("what was multiplied")
    .in("gate", &A::gate, "tokens intermediate", like("x"))
    .meaning("what went through the function")
    .in("dy", &A::dy, "tokens intermediate", like("x"))
    .meaning("the gradient of swiglu's out")
    .out("dx", &A::dx, "tokens intermediate", like("x"))
    .may_be("dy")
    .out("dgate", &A::dgate, "tokens intermediate", like("x"))
    .rows(Axis::tokens)
    .plan(plan_backward_of<A, Function::silu, Operands::two_tensors>)
    .reference<swiglu_backward_ref<double>, swiglu_backward_ref<OrderFree>>()
    .generate<widen<A>>()
    .budget(silu_backward_budget)
    .unfit_all({DataKind::infinite})  // what underflows in f32 is 0, and 0 times an infinity no number
    .cases(backward_cases({{"gate.pad", {0, 8, 1}}, {"dgate.pad", {0, 8, 1}}}))
    .bench(backward_bench());

}  // namespace quern::activation
