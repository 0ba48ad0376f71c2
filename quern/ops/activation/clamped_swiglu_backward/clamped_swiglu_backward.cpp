// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/activation/clamped_swiglu_backward.h"

#include "quern/ops/activation/activate_row_backward/activate_row_backward.h"
#include "quern/ops/activation/clamped_swiglu_backward/ref.h"

namespace quern::activation {

using A = ClampedSwigluBackwardArgs;

static Plan plan(const Problem& p, const DeviceInfo& device) {
  return plan_backward<A>(p, device, Function::clamped_swiglu, p.attr(&A::interleaved) ? Operands::pairs : Operands::halves);
}

QN_OP(clamped_swiglu_backward, A, "activation.clamped_swiglu_backward")
    .doc(
        "dgate = dy (u + beta) (s + alpha g s (1 - s)) where gate <= limit, dup = dy g s where |up| <= limit, else 0; g = min(gate, limit), u = up cut to [-limit, limit], s = 1 / (1 + exp(-alpha g))")
    .source("OpenAI, gpt-oss-120b and gpt-oss-20b Model Card, arXiv 2508.10925")
    .in("x", &A::x, "tokens 2*intermediate", {DType::f32, DType::f16, DType::bf16})
    .meaning("gate and up: halves, or pairs where interleaved")
    .in("dy", &A::dy, "tokens intermediate", like("x"))
    .meaning("the gradient of clamped_swiglu's out")
    .out("dx", &A::dx, "tokens 2*intermediate", like("x"))
    .may_be("x")
    .with(state_clamped_attributes<A>)
    .require(clamped_attributes_fit<A>)
    .rows(Axis::tokens)
    .plan(plan)
    .reference<clamped_swiglu_backward_ref<double>, clamped_swiglu_backward_ref<OrderFree>>()
    .generate<widen<A>>()
    .budget(gelu_tanh_backward_budget)
    .unfit_all({DataKind::infinite})  // what underflows in f32 is 0, and 0 times an infinity no number
    .cases(backward_cases({{"interleaved", {true, false}}, {"limit", {7.0, 1.0}}, {"alpha", {1.702, -1.0}}, {"beta", {1.0, 0.0}}}))
    .bench(backward_bench());

}  // namespace quern::activation
