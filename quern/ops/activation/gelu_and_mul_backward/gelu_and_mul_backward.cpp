// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/activation/gelu_and_mul_backward.h"

#include "quern/ops/activation/activate_row_backward/activate_row_backward.h"
#include "quern/ops/activation/gelu_and_mul_backward/ref.h"

namespace quern::activation {

using A = GeluAndMulBackwardArgs;

QN_OP(gelu_and_mul_backward, A, "activation.gelu_and_mul_backward")
    .doc(
        "dx[:, :intermediate] = dy u f'(g), dx[:, intermediate:] = dy gelu(g), g and u the halves of x, f'(g) = P(X <= g) + g exp(-g^2 / 2) / sqrt(2 pi), X normal")
    .source("Shazeer, GLU Variants Improve Transformer, arXiv 2002.05202")
    .in("x", &A::x, "tokens 2*intermediate", {DType::f32, DType::f16, DType::bf16})
    .meaning("gate, then up")
    .in("dy", &A::dy, "tokens intermediate", like("x"))
    .meaning("the gradient of gelu_and_mul's out")
    .out("dx", &A::dx, "tokens 2*intermediate", like("x"))
    .may_be("x")
    .rows(Axis::tokens)
    .plan(plan_backward_of<A, Function::gelu, Operands::halves>)
    .reference<gelu_and_mul_backward_ref<double>, gelu_and_mul_backward_ref<OrderFree>>()
    .generate<widen<A>>()
    .budget(gelu_backward_budget)
    .unfit_all({DataKind::infinite})  // what underflows in f32 is 0, and 0 times an infinity no number
    .cases(backward_cases())
    .bench(backward_bench());

}  // namespace quern::activation
