// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/norm/rms_norm_backward.h"

#include "quern/ops/norm/norm_form/norm_form.h"
#include "quern/ops/norm/norm_row_backward/norm_row_backward.h"
#include "quern/ops/norm/rms_norm_backward/ref.h"

namespace quern::norm {

using A = RmsNormBackwardArgs;

QN_OP(rms_norm_backward, A, "norm.rms_norm_backward")
    .doc("dx = r (g - x r^2 mean(g x)); dw = sum_t dy x r; r = 1 / sqrt(mean(x^2) + eps), g = dy (weight + weight_bias)")
    .source("Zhang and Sennrich, Root Mean Square Layer Normalization, arXiv 1910.07467")
    .in("dy", &A::dy, "tokens hidden", {DType::f32, DType::f16, DType::bf16})
    .meaning("the gradient of rms_norm's out")
    .in("x", &A::x, "tokens hidden", like("dy"))
    .in("weight", &A::weight, "hidden", like("dy", {DType::f32}))
    .out("dx", &A::dx, "tokens hidden", like("dy"))
    .may_be("dy")
    .out("dw", &A::dw, "hidden", like("weight", {DType::f32}))
    .optional()
    .attr("eps", &A::eps)
    .meaning("added to the mean square, from 0 to 1e30")
    .attr("weight_bias", &A::weight_bias)
    .meaning("as rms_norm adds it to the weight")
    .require(eps_fits<A>)
    .require(weight_bias_fits<A>)
    .rows(Axis::tokens)
    .plan(plan_norm_backward<A>)
    .reference<rms_norm_backward_ref<double>, rms_norm_backward_ref<OrderFree>>()
    .budget(norm_backward_budget<A>)
    .cases(norm_backward_cases({{"weight_bias", {0.0, 1.0}}, {"x.pad", {0, 8, 1}}}), derive_norm_backward)
    .bench(norm_backward_bench());

}  // namespace quern::norm
