// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/norm/fused_add_layer_norm.h"

#include "quern/ops/norm/fused_add_layer_norm/ref.h"
#include "quern/ops/norm/norm_form/norm_form.h"

namespace quern::norm {

using A = FusedAddLayerNormArgs;

static Plan plan(const Problem& p, const DeviceInfo& device) {
  return plan_norm_form<A>(p, device, true, p[Axis::tokens], p[Axis::hidden]);
}

QN_OP(fused_add_layer_norm, A, "norm.fused_add_layer_norm")
    .doc("residual = residual + x; out = (residual - mean) / sqrt(mean((residual - mean)^2) + eps) * weight + bias")
    .source("Ba et al., Layer Normalization, arXiv 1607.06450")
    .in("x", &A::x, "tokens hidden", {DType::f32, DType::f16, DType::bf16})
    .inout("residual", &A::residual, "tokens hidden", like("x"))
    .meaning("the residual stream, updated in place")
    .in("weight", &A::weight, "hidden", like("x", {DType::f32}))
    .optional()
    .meaning("absent: 1")
    .in("bias", &A::bias, "hidden", like("x", {DType::f32}))
    .optional()
    .meaning("of the weight's dtype; absent: 0")
    .out("out", &A::out, "tokens hidden", like("x", {DType::e4m3}))
    .may_be("x")
    .meaning("e4m3 with one kind of scale; it must not overlap x then")
    .with(state_scales<A>)
    .attr("eps", &A::eps)
    .meaning("added to the mean square, from 0 to 1e30")
    .with(state_amax_floor<A>)
    .require(eps_fits<A>)
    .require(one_kind_of_scales<A>)
    .require(bias_like_weight<A>)
    .rows(Axis::tokens)
    .plan(plan)
    .reference<fused_add_layer_norm_ref<double>, fused_add_layer_norm_ref<OrderFree>>()
    .generate<generate_norm<A>>()
    .budget(layer_norm_budget)
    .cases(layer_norm_cases({{"residual.pad", {0, 16, 1}}}), derive_layer_norm)
    .bench({{{"tokens", 64}, {"hidden", 4096}}, {{"tokens", 16384}, {"hidden", 8192}}});

}  // namespace quern::norm
