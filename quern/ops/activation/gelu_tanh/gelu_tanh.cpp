// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/activation/gelu_tanh.h"

#include "quern/ops/activation/activate_row/activate_row.h"
#include "quern/ops/activation/gelu_tanh/ref.h"

namespace quern::activation {

using A = GeluTanhArgs;

QN_OP(gelu_tanh, A, "activation.gelu_tanh")
    .doc("out = x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))")
    .source("Hendrycks and Gimpel, Gaussian Error Linear Units, arXiv 1606.08415")
    .in("x", &A::x, "tokens intermediate", {DType::f32, DType::f16, DType::bf16})
    .out("out", &A::out, "tokens intermediate", like("x", {DType::e4m3}))
    .may_be("x")
    .meaning("e4m3 with scales; it must not overlap x then")
    .with(state_scales<A>)
    .within(kGeluScales)
    .with(state_amax_floor<A>)
    .require(scales_belong_to_fp8<A>)
    .rows(Axis::tokens)
    .backward("activation.gelu_tanh_backward", {{"dy", "out"}, {"dx", "x"}})
    .plan(plan_of<A, Function::gelu_tanh, Operands::alone>)
    .reference<gelu_tanh_ref<double>, gelu_tanh_ref<OrderFree>>()
    .generate<widen<A>>()
    .budget(gelu_tanh_budget)
    .cases(activation_cases(), derive_fp8_output)
    .bench({{{"tokens", 1}, {"intermediate", 14336}},
            {{"tokens", 4096}, {"intermediate", 14336}},
            {{"tokens", 16384}, {"intermediate", 14336}, {"fp8", 1}}});

}  // namespace quern::activation
