// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/activation/silu_and_mul.h"

#include "quern/ops/activation/activate_row/activate_row.h"
#include "quern/ops/activation/silu_and_mul/ref.h"

namespace quern::activation {

using A = SiluAndMulArgs;

QN_OP(silu_and_mul, A, "activation.silu_and_mul")
    .doc("out = silu(x[:, :intermediate]) * x[:, intermediate:], silu(g) = g / (1 + exp(-g))")
    .source("Shazeer, GLU Variants Improve Transformer, arXiv 2002.05202")
    .in("x", &A::x, "tokens 2*intermediate", {DType::f32, DType::f16, DType::bf16})
    .meaning("gate, then up")
    .out("out", &A::out, "tokens intermediate", like("x", {DType::e4m3}))
    .with(state_scales<A>)
    .within(kSiluScales)
    .with(state_amax_floor<A>)
    .require(scales_belong_to_fp8<A>)
    .rows(Axis::tokens)
    .backward("activation.silu_and_mul_backward", {{"dy", "out"}, {"dx", "x"}})
    .plan(plan_of<A, Function::silu, Operands::halves>)
    .reference<silu_and_mul_ref<double>, silu_and_mul_ref<OrderFree>>()
    .generate<widen<A>>()
    .budget(silu_budget)
    .unfit_all({DataKind::infinite})  // what underflows in f32 is 0, and 0 times an infinity no number
    .cases(activation_cases(), derive_fp8_output)
    .bench({{{"tokens", 1}, {"intermediate", 14336}},
            {{"tokens", 64}, {"intermediate", 14336}},
            {{"tokens", 4096}, {"intermediate", 14336}},
            {{"tokens", 16384}, {"intermediate", 14336}},
            {{"tokens", 64}, {"intermediate", 14336}, {"fp8", 1}},
            {{"tokens", 16384}, {"intermediate", 14336}, {"fp8", 1}}});

}  // namespace quern::activation
