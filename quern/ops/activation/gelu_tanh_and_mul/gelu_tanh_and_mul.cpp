// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/activation/gelu_tanh_and_mul.h"

#include "quern/ops/activation/activate_row/activate_row.h"
#include "quern/ops/activation/gelu_tanh_and_mul/ref.h"

namespace quern::activation {

using A = GeluTanhAndMulArgs;

QN_OP(gelu_tanh_and_mul, A, "activation.gelu_tanh_and_mul")
    .doc("out = gelu_tanh(x[:, :intermediate]) * x[:, intermediate:], gelu_tanh(g) = g / 2 (1 + tanh(sqrt(2 / pi) (g + 0.044715 g^3)))")
    .source("Shazeer, GLU Variants Improve Transformer, arXiv 2002.05202")
    .in("x", &A::x, "tokens 2*intermediate", {DType::f32, DType::f16, DType::bf16})
    .meaning("gate, then up")
    .out("out", &A::out, "tokens intermediate", like("x", {DType::e4m3}))
    .with(state_scales<A>)
    .within(kGeluScales)
    .with(state_amax_floor<A>)
    .require(scales_belong_to_fp8<A>)
    .rows(Axis::tokens)
    .backward("activation.gelu_tanh_and_mul_backward", {{"dy", "out"}, {"dx", "x"}})
    .plan(plan_of<A, Function::gelu_tanh, Operands::halves>)
    .reference<gelu_tanh_and_mul_ref<double>, gelu_tanh_and_mul_ref<OrderFree>>()
    .generate<widen<A>>()
    .budget(gelu_tanh_budget)
    .unfit_all({DataKind::infinite})  // what underflows in f32 is 0, and 0 times an infinity no number
    .cases(activation_cases(), derive_fp8_output)
    .bench({{{"tokens", 1}, {"intermediate", 14336}},
            {{"tokens", 4096}, {"intermediate", 14336}},
            {{"tokens", 16384}, {"intermediate", 14336}, {"fp8", 1}}});

}  // namespace quern::activation
