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
    .out("scales", &A::scales, "tokens ceil_div(intermediate,128)", {DType::f32})
    .optional()
    .meaning("of an out that is e4m3, as quant.per_token_group makes them; else absent")
    .column_major(16)
    .within(kGeluScales)
    .attr("amax_floor", &A::amax_floor)
    .meaning("least largest magnitude of a group, from 1e-30 to 1e30; engines take 1e-10")
    .require(scales_belong_to_fp8<A>)
    .require(amax_floor_fits<A>)
    .rows(Axis::tokens)
    .plan(plan_of<A, Function::gelu_tanh, Operands::halves>)
    .reference<gelu_tanh_and_mul_ref<double>, gelu_tanh_and_mul_ref<OrderFree>>()
    .generate<widen<A>>()
    .budget(gelu_tanh_budget)
    .cases(activation_cases(), derive_fp8_output)
    .bench({{{"tokens", 1}, {"intermediate", 14336}},
            {{"tokens", 4096}, {"intermediate", 14336}},
            {{"tokens", 16384}, {"intermediate", 14336}, {"fp8", 1}}});

}  // namespace quern::activation
