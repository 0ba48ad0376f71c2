// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/activation/gelu.h"

#include "quern/ops/activation/activate_row/activate_row.h"
#include "quern/ops/activation/gelu/ref.h"

namespace quern::activation {

using A = GeluArgs;

QN_OP(gelu, A, "activation.gelu")
    .doc("out = x P(X <= x) of a normal X, by erf")
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
    .backward("activation.gelu_backward", {{"dy", "out"}, {"dx", "x"}})
    .plan(plan_of<A, Function::gelu, Operands::alone>)
    .reference<gelu_ref<double>, gelu_ref<OrderFree>>()
    .generate<widen<A>>()
    .budget(gelu_budget)
    .cases(activation_cases(), derive_fp8_output)
    .bench({{{"tokens", 1}, {"intermediate", 14336}},
            {{"tokens", 4096}, {"intermediate", 14336}},
            {{"tokens", 16384}, {"intermediate", 14336}, {"fp8", 1}}});

}  // namespace quern::activation
