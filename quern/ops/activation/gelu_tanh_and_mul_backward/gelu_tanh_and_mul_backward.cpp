// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/activation/gelu_tanh_and_mul_backward.h"

#include "quern/ops/activation/activate_row_backward/activate_row_backward.h"
#include "quern/ops/activation/gelu_tanh_and_mul_backward/ref.h"

namespace quern::activation {

using A = GeluTanhAndMulBackwardArgs;

QN_OP(gelu_tanh_and_mul_backward, A, "activation.gelu_tanh_and_mul_backward")
    .doc(
        "dx[:, :intermediate] = dy u f'(g), dx[:, intermediate:] = dy gelu_tanh(g), g and u the halves of x, f'(g) = s + g s (1 - s) z', s = 1 / (1 + exp(-z)), z = 2 sqrt(2 / pi) (g + 0.044715 g^3)")
    .source("Shazeer, GLU Variants Improve Transformer, arXiv 2002.05202")
    .in("x", &A::x, "tokens 2*intermediate", {DType::f32, DType::f16, DType::bf16})
    .meaning("gate, then up")
    .in("dy", &A::dy, "tokens intermediate", like("x"))
    .meaning("the gradient of gelu_tanh_and_mul's out")
    .out("dx", &A::dx, "tokens 2*intermediate", like("x"))
    .may_be("x")
    .rows(Axis::tokens)
    .plan(plan_backward_of<A, Function::gelu_tanh, Operands::halves>)
    .reference<gelu_tanh_and_mul_backward_ref<double>, gelu_tanh_and_mul_backward_ref<OrderFree>>()
    .generate<widen<A>>()
    .budget(gelu_tanh_backward_budget)
    .unfit_all({DataKind::infinite})  // what underflows in f32 is 0, and 0 times an infinity no number
    .cases(backward_cases())
    .bench(backward_bench());

}  // namespace quern::activation
