// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/activation/clamped_swiglu.h"

#include "quern/ops/activation/activate_row/activate_row.h"
#include "quern/ops/activation/clamped_swiglu/ref.h"

namespace quern::activation {

using A = ClampedSwigluArgs;

static Plan plan(const Problem& p, const DeviceInfo& device) {
  return plan_rows<A>(p, device, Function::clamped_swiglu, p.attr(&A::interleaved) ? Operands::pairs : Operands::halves);
}

QN_OP(clamped_swiglu, A, "activation.clamped_swiglu")
    .doc(
        "out = (u + beta) * g / (1 + exp(-alpha g)), g = min(gate, limit), u = up cut to [-limit, limit]; gate and up are the halves of x, or its pairs")
    .source("OpenAI, gpt-oss-120b and gpt-oss-20b Model Card, arXiv 2508.10925")
    .in("x", &A::x, "tokens 2*intermediate", {DType::f32, DType::f16, DType::bf16})
    .meaning("gate and up: halves, or pairs where interleaved")
    .out("out", &A::out, "tokens intermediate", like("x", {DType::e4m3}))
    .with(state_scales<A>)
    .within(kGeluScales)
    .with(state_clamped_attributes<A>)
    .with(state_amax_floor<A>)
    .require(scales_belong_to_fp8<A>)
    .require(clamped_attributes_fit<A>)
    .rows(Axis::tokens)
    .backward("activation.clamped_swiglu_backward", {{"dy", "out"}, {"dx", "x"}})
    .plan(plan)
    .reference<clamped_swiglu_ref<double>, clamped_swiglu_ref<OrderFree>>()
    .generate<widen<A>>()
    .budget(clamped_swiglu_budget)
    .unfit_all({DataKind::infinite})  // what underflows in f32 is 0, and 0 times an infinity no number
    .cases(activation_cases({{"interleaved", {true, false}}, {"limit", {7.0, 1.0}}, {"alpha", {1.702, -1.0}}, {"beta", {1.0, 0.0}}}),
           derive_fp8_output)
    .bench({{{"tokens", 1}, {"intermediate", 14336}},
            {{"tokens", 4096}, {"intermediate", 14336}},
            {{"tokens", 16384}, {"intermediate", 14336}, {"fp8", 1}}});

}  // namespace quern::activation
