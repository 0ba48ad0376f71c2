// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/norm/fused_add_layer_norm_backward.h"

#include "quern/ops/norm/fused_add_layer_norm_backward/ref.h"
#include "quern/ops/norm/norm_form/norm_form.h"
#include "quern/ops/norm/norm_row_backward/norm_row_backward.h"

namespace quern::norm {

using A = FusedAddLayerNormBackwardArgs;

QN_OP(fused_add_layer_norm_backward, A, "norm.fused_add_layer_norm_backward")
    .doc(
        "dx = r (g - mean(g) - n mean(g n)) + dresidual; dw = sum_t dy n; dbias = sum_t dy; n = (residual - mean(residual)) r, r = 1 / sqrt(mean((residual - mean(residual))^2) + eps), g = dy weight")
    .source("Ba et al., Layer Normalization, arXiv 1607.06450")
    .in("dy", &A::dy, "tokens hidden", {DType::f32, DType::f16, DType::bf16})
    .meaning("the gradient of fused_add_layer_norm's out")
    .unfit({DataKind::infinite})  // dx is then infinite or NaN by the sign of n, which rounding chooses where x is next to its row's mean
    .in("residual", &A::residual, "tokens hidden", like("dy"))
    .meaning("the sum, as fused_add_layer_norm left it")
    .in("weight", &A::weight, "hidden", like("dy", {DType::f32}))
    .unfit({DataKind::infinite})
    .optional()
    .meaning("absent: 1")
    .in("dresidual", &A::dresidual, "tokens hidden", like("dy"))
    .meaning("the gradient of residual behind fused_add_layer_norm")
    .out("dx", &A::dx, "tokens hidden", like("dy"))
    .may_be("dresidual")
    .meaning("the gradient of x, and of residual as it was")
    .with(state_centred_gradients<A>)
    .require(eps_fits<A>)
    .require(dbias_like_dw<A>)
    .rows(Axis::tokens)
    .plan(plan_norm_backward<A>)
    .reference<fused_add_layer_norm_backward_ref<double>, fused_add_layer_norm_backward_ref<OrderFree>>()
    .generate<generate_offset<A>>()
    .budget(norm_backward_budget<A>)
    .cases(norm_backward_cases({{"weight.present", {true, false}},
                                {"dbias.present", {true, false}},
                                {"offset", {0, 100, 10000}, "what is added to residual"},
                                {"residual.pad", {0, 8, 1}},
                                {"dresidual.pad", {0, 8, 1}}}),
           derive_norm_backward)
    .bench(norm_backward_bench());

}  // namespace quern::norm
