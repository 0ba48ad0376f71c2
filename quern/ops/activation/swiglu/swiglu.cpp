// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/activation/swiglu.h"

#include "quern/ops/activation/activate_row/activate_row.h"
#include "quern/ops/activation/swiglu/ref.h"

namespace quern::activation {

using A = SwigluArgs;

QN_OP(swiglu, A, "activation.swiglu")
    .doc("out = silu(gate) * x, silu(g) = g / (1 + exp(-g))")
    .source("Shazeer, GLU Variants Improve Transformer, arXiv 2002.05202")
    .in("x", &A::x, "tokens intermediate", {DType::f32, DType::f16, DType::bf16})
    .meaning("what is multiplied")
    .in("gate", &A::gate, "tokens intermediate", like("x"))
    .meaning("what goes through the function")
    .out("out", &A::out, "tokens intermediate", like("x", {DType::e4m3}))
    .may_be("x")
    .meaning("e4m3 with scales; it must not overlap x then")
    .with(state_scales<A>)
    .within(kSiluScales)
    .with(state_amax_floor<A>)
    .require(scales_belong_to_fp8<A>)
    .rows(Axis::tokens)
    .backward("activation.swiglu_backward", {{"dy", "out"}, {"dx", "x"}, {"dgate", "gate"}})
    .plan(plan_of<A, Function::silu, Operands::two_tensors>)
    .reference<swiglu_ref<double>, swiglu_ref<OrderFree>>()
    .generate<widen<A>>()
    .budget(silu_budget)
    .unfit_all({DataKind::infinite})  // what underflows in f32 is 0, and 0 times an infinity no number
    .cases(activation_cases({{"gate.pad", {0, 8, 1}}}), derive_fp8_output)
    .bench({{{"tokens", 1}, {"intermediate", 14336}},
            {{"tokens", 4096}, {"intermediate", 14336}},
            {{"tokens", 16384}, {"intermediate", 14336}, {"fp8", 1}}});

}  // namespace quern::activation
