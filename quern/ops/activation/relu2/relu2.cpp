// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/activation/relu2.h"

#include "quern/ops/activation/activate_row/activate_row.h"
#include "quern/ops/activation/relu2/ref.h"

namespace quern::activation {

using A = Relu2Args;

QN_OP(relu2, A, "activation.relu2")
    .doc("out = max(x, 0)^2")
    .source("So et al., Primer: Searching for Efficient Transformers for Language Modeling, arXiv 2109.08668")
    .in("x", &A::x, "tokens intermediate", {DType::f32, DType::f16, DType::bf16})
    .out("out", &A::out, "tokens intermediate", like("x", {DType::e4m3}))
    .may_be("x")
    .meaning("e4m3 with scales; it must not overlap x then")
    .with(state_scales<A>)
    .within(kRelu2Scales)
    .with(state_amax_floor<A>)
    .require(scales_belong_to_fp8<A>)
    .rows(Axis::tokens)
    .backward("activation.relu2_backward", {{"dy", "out"}, {"dx", "x"}})
    .plan(plan_of<A, Function::relu2, Operands::alone>)
    .reference<relu2_ref<double>, relu2_ref<OrderFree>>()
    .generate<widen<A>>()
    .budget(relu2_budget)
    .cases(activation_cases(), derive_fp8_output)
    .bench({{{"tokens", 1}, {"intermediate", 14336}},
            {{"tokens", 4096}, {"intermediate", 14336}},
            {{"tokens", 16384}, {"intermediate", 14336}, {"fp8", 1}}});

}  // namespace quern::activation
