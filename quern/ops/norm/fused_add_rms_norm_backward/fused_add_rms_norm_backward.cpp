// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/norm/fused_add_rms_norm_backward.h"

#include "quern/ops/norm/fused_add_rms_norm_backward/ref.h"
#include "quern/ops/norm/norm_form/norm_form.h"
#include "quern/ops/norm/norm_row_backward/norm_row_backward.h"

namespace quern::norm {

using A = FusedAddRmsNormBackwardArgs;

QN_OP(fused_add_rms_norm_backward, A, "norm.fused_add_rms_norm_backward")
    .doc(
        "dx = r (g - residual r^2 mean(g residual)) + dresidual; dw = sum_t dy residual r; r = 1 / sqrt(mean(residual^2) + eps), g = dy (weight + weight_bias)")
    .source("Zhang and Sennrich, Root Mean Square Layer Normalization, arXiv 1910.07467")
    .in("dy", &A::dy, "tokens hidden", {DType::f32, DType::f16, DType::bf16})
    .meaning("the gradient of fused_add_rms_norm's out")
    .in("residual", &A::residual, "tokens hidden", like("dy"))
    .meaning("the sum, as fused_add_rms_norm left it")
    .in("weight", &A::weight, "hidden", like("dy", {DType::f32}))
    .in("dresidual", &A::dresidual, "tokens hidden", like("dy"))
    .meaning("the gradient of residual behind fused_add_rms_norm")
    .out("dx", &A::dx, "tokens hidden", like("dy"))
    .may_be("dresidual")
    .meaning("the gradient of x, and of residual as it was")
    .out("dw", &A::dw, "hidden", like("weight", {DType::f32}))
    .optional()
    .attr("eps", &A::eps)
    .meaning("added to the mean square, from 0 to 1e30")
    .attr("weight_bias", &A::weight_bias)
    .meaning("as fused_add_rms_norm adds it to the weight")
    .require(eps_fits<A>)
    .require(weight_bias_fits<A>)
    .rows(Axis::tokens)
    .plan(plan_norm_backward<A>)
    .reference<fused_add_rms_norm_backward_ref<double>, fused_add_rms_norm_backward_ref<OrderFree>>()
    .budget(norm_backward_budget<A>)
    .cases(norm_backward_cases({{"weight_bias", {0.0, 1.0}}, {"residual.pad", {0, 8, 1}}, {"dresidual.pad", {0, 8, 1}}}),
           derive_norm_backward)
    .bench(norm_backward_bench());

}  // namespace quern::norm
