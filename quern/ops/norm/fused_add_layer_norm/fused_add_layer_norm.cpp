// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/norm/fused_add_layer_norm.h"

#include "quern/ops/norm/fused_add_layer_norm/ref.h"
#include "quern/ops/norm/norm_form/norm_form.h"

namespace quern::norm {

using A = FusedAddLayerNormArgs;

static Plan plan(const Problem& p, const DeviceInfo& device) { return plan_norm_form<A>(p, device, true, p[Axis::tokens], p[Axis::hidden]); }

/// Heeds what derive_norm does, and the word affine.
static void derive(Case& which) {
  derive_norm(which);
  const i64 affine = i64(which["affine"]);
  which["weight.present"] = affine != 3, which["bias.present"] = affine == 0;
  if (affine == 2) which["weight.present"] = 0, which["bias.present"] = 1;
  if (which["wide_weight"] != 0) which["bias.dtype"] = int(DType::f32);
}

/// One dtype for both, which the kernel reads by.
static Rejection bias_like_weight(const Problem& p) {
  if (!p.tensor(&A::weight).present || !p.tensor(&A::bias).present || p.dtype(&A::weight) == p.dtype(&A::bias)) return {};
  return {"bias", name(p.dtype(&A::bias)), "the dtype of weight"};
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
    .out("scales", &A::scales, "tokens ceil_div(hidden,128)", {DType::f32})
    .optional()
    .meaning("of an out that is e4m3, as quant.per_token_group makes them; else absent")
    .column_major(16)
    .within(kLayerNormScales)
    .out("token_scales", &A::token_scales, "tokens", {DType::f32})
    .optional()
    .meaning("of an out that is e4m3, one for each row, in the place of scales")
    .strided()
    .within(kLayerNormScales)
    .in("static_scale", &A::static_scale, "1", {DType::f32})
    .optional()
    .meaning("positive; of an out that is e4m3, the scale of all, in the place of computed ones")
    .attr("eps", &A::eps)
    .meaning("added to the mean square, from 0 to 1e30")
    .attr("amax_floor", &A::amax_floor)
    .meaning("least largest magnitude of what shares a computed FP8 scale, from 1e-30 to 1e30; engines take 1e-10")
    .require(eps_fits<A>)
    .require(amax_floor_fits<A>)
    .require(one_kind_of_scales<A>)
    .require(bias_like_weight)
    .rows(Axis::tokens)
    .plan(plan)
    .reference<fused_add_layer_norm_ref<double>, fused_add_layer_norm_ref<OrderFree>>()
    .generate<generate_norm<A>>()
    .budget(layer_norm_budget)
    .cases({{"tokens", {3, 0, 1, 64}},
            {"hidden", {4096, 1, 7, 64, 96, 127, 768, 1023, 2056, 8192, 20000}},
            {"x.dtype", {DType::bf16, DType::f16, DType::f32}},
            {"affine", {0, 1, 2, 3}, "weight and bias (0), the weight alone (1), the bias alone (2) or none (3)"},
            {"wide_weight", {0, 1}, "weight and bias are f32"},
            {"x.pad", {0, 8, 3}},
            {"residual.pad", {0, 16, 1}},
            {"out.pad", {0, 16, 1}},
            {"fp8", {0, 1, 2, 3, 4}, "out is e4m3, with scales as the FP8 GEMM reads them (1), row-major (2), a scale a row (3) or one static scale (4)"}},
           derive)
    .bench({{{"tokens", 64}, {"hidden", 4096}}, {{"tokens", 16384}, {"hidden", 8192}}});

}  // namespace quern::norm
