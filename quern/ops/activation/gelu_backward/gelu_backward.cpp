// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/activation/gelu_backward.h"

#include "quern/ops/activation/activate_row_backward/activate_row_backward.h"
#include "quern/ops/activation/gelu_backward/ref.h"

namespace quern::activation {

using A = GeluBackwardArgs;

QN_OP(gelu_backward, A, "activation.gelu_backward")
    .doc("dx = dy f'(x), f'(x) = P(X <= x) + x exp(-x^2 / 2) / sqrt(2 pi), X normal")
    .source("Hendrycks and Gimpel, Gaussian Error Linear Units, arXiv 1606.08415")
    .in("x", &A::x, "tokens intermediate", {DType::f32, DType::f16, DType::bf16})
    .in("dy", &A::dy, "tokens intermediate", like("x"))
    .meaning("the gradient of gelu's out")
    .out("dx", &A::dx, "tokens intermediate", like("x"))
    .may_be("dy")
    .rows(Axis::tokens)
    .plan(plan_backward_of<A, Function::gelu, Operands::alone>)
    .reference<gelu_backward_ref<double>, gelu_backward_ref<OrderFree>>()
    .generate<widen<A>>()
    .budget(gelu_backward_budget)
    .unfit_all({DataKind::infinite})  // what underflows in f32 is 0, and 0 times an infinity no number
    .cases(backward_cases())
    .bench(backward_bench());

}  // namespace quern::activation
