// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/norm/rms_norm_heads.h"

#include "quern/ops/norm/norm_form/norm_form.h"
#include "quern/ops/norm/rms_norm_heads/ref.h"

namespace quern::norm {

using A = RmsNormHeadsArgs;

static Plan plan(const Problem& p, const DeviceInfo& device) {
  static const Axis heads = axis_of("heads");
  return plan_norm_form<A>(p, device, false, p[Axis::tokens] * p[heads], p[Axis::head_dim], true);
}

static void derive(Case& which) {
  which["weight.present"] = which["weights"] != 2;
  if (which["weights"] == 1) which["weight.dtype"] = int(DType::f32);
}

QN_OP(rms_norm_heads, A, "norm.rms_norm_heads")
    .doc("out = x / sqrt(mean(x^2) + eps) * (weight + weight_bias) for each head of each token")
    .source("Zhang and Sennrich, Root Mean Square Layer Normalization, arXiv 1910.07467")
    .in("x", &A::x, "tokens heads head_dim", {DType::f32, DType::f16, DType::bf16})
    .meaning("heads of q or of k; they may be a part of a QKV tensor")
    .in("weight", &A::weight, "head_dim", like("x", {DType::f32}))
    .optional()
    .meaning("one for all heads; absent: 1")
    .out("out", &A::out, "tokens heads head_dim", like("x"))
    .may_be("x")
    .attr("eps", &A::eps)
    .meaning("added to the mean square, from 0 to 1e30")
    .attr("weight_bias", &A::weight_bias)
    .meaning("added to the weight, where there is one: Gemma's is 1")
    .require(eps_fits<A>)
    .require(weight_bias_fits<A>)
    .rows(Axis::tokens)
    .plan(plan)
    .reference<rms_norm_heads_ref<double>, rms_norm_heads_ref<OrderFree>>()
    .budget(norm_form_budget)
    .cases({{"tokens", {4, 0, 1, 33}},
            {"heads", {8, 1, 5}},
            {"head_dim", {128, 64, 80, 96, 256, 7, 512}},
            {"x.dtype", {DType::bf16, DType::f16, DType::f32}},
            {"weights", {0, 1, 2}, "the weight has x's dtype (0), is f32 (1) or absent (2)"},
            {"weight_bias", {0.0, 1.0}},
            {"x.pad", {0, 8, 1}},
            {"out.pad", {0, 16, 3}}},
           derive)
    .bench({{{"tokens", 64}, {"heads", 32}, {"head_dim", 128}}, {{"tokens", 4096}, {"heads", 32}, {"head_dim", 128}}});

}  // namespace quern::norm
