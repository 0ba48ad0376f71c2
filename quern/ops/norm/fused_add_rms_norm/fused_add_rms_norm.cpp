// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/norm/fused_add_rms_norm.h"

#include "quern/ops/norm/fused_add_rms_norm/ref.h"
#include "quern/ops/norm/norm_form/norm_form.h"

namespace quern::norm {

using A = FusedAddRmsNormArgs;

static NormRowParams params(const Call<FusedAddRmsNormArgs>& c) {
  const FusedAddRmsNormArgs& a = c.args;
  return {a.x.data,         a.weight.data,           a.residual.data,         a.out.data, a.x.strides[0], a.residual.strides[0],
          a.out.strides[0], c.problem[Axis::tokens], c.problem[Axis::hidden], a.eps};
}

static NormRowGroupsParams groups_params(const Call<FusedAddRmsNormArgs>& c) {
  const TensorView& scales = c.args.scales;
  return {params(c), scales.data, {scales.strides[0], scales.strides[1]}, c.args.amax_floor, 0};
}

/// norm_row has the plain forms and is the fastest; norm_row_form has all others.
static Plan plan(const Problem& p, const DeviceInfo& device) {
  const Fp8Scales scales = fp8_scales_of<A>(p);
  if (p.dtype(&A::weight) != p.dtype(&A::x) || p.attr(&A::weight_bias) != 0 || scales == Fp8Scales::tensor || scales == Fp8Scales::token)
    return plan_norm_form<A>(p, device, false, p[Axis::tokens], p[Axis::hidden]);
  const i32 vector = min_of(min_of(p.vector(&A::x), p.vector(&A::residual)), min_of(p.vector(&A::out), p.vector(&A::weight)));
  const bool groups = scales == Fp8Scales::group;
  NormRowConfig config = norm_row_config(p.dtype(&A::x), vector, p[Axis::hidden], true, groups);
  // At 64 registers groups would spill 16 bytes
  while (groups && config.min_blocks > 1 && 65536 / (config.threads * config.min_blocks) < 72) --config.min_blocks;
  const Grid grid{.x = norm_row_blocks(config, p[Axis::tokens], device), .smem = norm_row_smem(config).bytes, .pdl = p.pdl};
  Plan plan;
  if (groups) plan.launch<groups_params>(norm_row_groups_kernel, config, grid);
  else plan.launch<params>(norm_row_kernel, config, grid);
  return plan;
}

QN_OP(fused_add_rms_norm, FusedAddRmsNormArgs, "norm.fused_add_rms_norm")
    .doc("residual = residual + x; out = residual / sqrt(mean(residual^2) + eps) * (weight + weight_bias)")
    .source("Zhang and Sennrich, Root Mean Square Layer Normalization, arXiv 1910.07467")
    .in("x", &A::x, "tokens hidden", {DType::f32, DType::f16, DType::bf16})
    .inout("residual", &A::residual, "tokens hidden", like("x"))
    .meaning("the residual stream, updated in place")
    .in("weight", &A::weight, "hidden", like("x", {DType::f32}))
    .read_early()
    .out("out", &A::out, "tokens hidden", like("x", {DType::e4m3}))
    .may_be("x")
    .meaning("e4m3 with one kind of scale; it must not overlap x then")
    .with(state_scales<A>)
    .attr("eps", &A::eps)
    .meaning("added to the mean square, from 0 to 1e30")
    .attr("weight_bias", &A::weight_bias)
    .meaning("added to the weight: Gemma's is 1")
    .with(state_amax_floor<A>)
    .require(eps_fits<A>)
    .require(weight_bias_fits<A>)
    .require(one_kind_of_scales<A>)
    .rows(Axis::tokens)
    .plan(plan)
    .reference<fused_add_rms_norm_ref<double>, fused_add_rms_norm_ref<OrderFree>>()
    .generate<generate_norm<A>>()
    .budget(norm_form_budget)
    // norm_row runs what has none of fp8, wide_weight and weight_bias: their first values stand several times, so that it meets the other
    // words
    .cases({{"tokens", {1, 0, 3, 64, 101}},
            {"hidden", {4096, 1, 7, 64, 96, 127, 768, 1023, 2056, 8192, 20000, 40000}},
            {"x.dtype", {DType::bf16, DType::f16, DType::f32}},
            {"wide_weight", {0, 0, 0, 1}, "the weight is f32"},
            {"weight_bias", {0.0, 0.0, 0.0, 1.0}},
            {"x.pad", {0, 8, 3}},
            {"residual.pad", {0, 16, 1}},
            {"out.pad", {0, 8}},
            {"fp8",
             {0, 0, 1, 2, 3, 4},
             "out is e4m3, with scales as the FP8 GEMM reads them (1), row-major (2), a scale a row (3) or one static scale (4)"}},
           derive_norm)
    .bench({{{"tokens", 1}, {"hidden", 4096}},
            {{"tokens", 64}, {"hidden", 4096}},
            {{"tokens", 256}, {"hidden", 8192}},
            {{"tokens", 8192}, {"hidden", 4096}},
            {{"tokens", 16384}, {"hidden", 8192}},
            {{"tokens", 65536}, {"hidden", 4096}},
            {{"tokens", 64}, {"hidden", 7168}, {"fp8", 1}},
            {{"tokens", 16384}, {"hidden", 7168}, {"fp8", 1}}});

}  // namespace quern::norm
