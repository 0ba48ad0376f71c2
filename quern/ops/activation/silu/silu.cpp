// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/activation/silu.h"

#include "quern/ops/activation/activate_row/activate_row.h"
#include "quern/ops/activation/silu/ref.h"

namespace quern::activation {

using A = SiluArgs;

QN_OP(silu, A, "activation.silu")
    .doc("out = x / (1 + exp(-x))")
    .source("Elfwing et al., Sigmoid-Weighted Linear Units, arXiv 1702.03118")
    .in("x", &A::x, "tokens intermediate", {DType::f32, DType::f16, DType::bf16})
    .out("out", &A::out, "tokens intermediate", like("x", {DType::e4m3}))
    .may_be("x")
    .meaning("e4m3 with scales; it must not overlap x then")
    .with(state_scales<A>)
    .within(kSiluScales)
    .with(state_amax_floor<A>)
    .require(scales_belong_to_fp8<A>)
    .rows(Axis::tokens)
    .backward("activation.silu_backward", {{"dy", "out"}, {"dx", "x"}})
    .plan(plan_of<A, Function::silu, Operands::alone>)
    .reference<silu_ref<double>, silu_ref<OrderFree>>()
    .generate<widen<A>>()
    .budget(silu_budget)
    .cases(activation_cases(), derive_fp8_output)
    .bench({{{"tokens", 1}, {"intermediate", 14336}},
            {{"tokens", 4096}, {"intermediate", 14336}},
            {{"tokens", 16384}, {"intermediate", 14336}, {"fp8", 1}}});

}  // namespace quern::activation
