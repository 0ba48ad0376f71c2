// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/norm/fused_add_rms_norm.h"

#include "quern/ops/norm/fused_add_rms_norm_ref.h"
#include "quern/ops/norm/norm_row.h"

namespace quern::norm {

static NormRowParams params(const Call<FusedAddRmsNormArgs>& c) {
  const FusedAddRmsNormArgs& a = c.args;
  return {a.x.data, a.weight.data, a.residual.data, a.out.data, a.x.strides[0], a.residual.strides[0], a.out.strides[0],
          c.problem[Axis::tokens], c.problem[Axis::hidden], a.eps};
}

static Plan plan(const Problem& p, const DeviceInfo& device, const Knobs&) {
  using A = FusedAddRmsNormArgs;
  const i32 vector = min_of(min_of(p.vector(&A::x), p.vector(&A::residual)), min_of(p.vector(&A::out), p.vector(&A::weight)));
  const NormRowConfig config = norm_row_config(p.dtype(&A::x), vector, p[Axis::hidden], true);
  Plan plan;
  plan.launch<params>(norm_row_kernel, config,
                      {.x = norm_row_blocks(config, p[Axis::tokens], device), .smem = norm_row_smem(config).bytes, .pdl = p.pdl});
  return plan;
}

QN_OP(fused_add_rms_norm, FusedAddRmsNormArgs, "norm.fused_add_rms_norm")
    .doc("residual = residual + x; out = residual / sqrt(mean(residual^2) + eps) * weight")
    .source("Zhang and Sennrich, Root Mean Square Layer Normalization, arXiv 1910.07467")
    .in("x", &FusedAddRmsNormArgs::x, "tokens hidden", {DType::f32, DType::f16, DType::bf16})
    .inout("residual", &FusedAddRmsNormArgs::residual, "tokens hidden", like("x"))
    .meaning("the residual stream, updated in place")
    .in("weight", &FusedAddRmsNormArgs::weight, "hidden", like("x"))
    .meaning("with pdl, read before the kernels before have ended")
    .out("out", &FusedAddRmsNormArgs::out, "tokens hidden", like("x"))
    .may_be("x")
    .attr("eps", &FusedAddRmsNormArgs::eps)
    .meaning("added to the mean square")
    .require(eps_is_not_negative<FusedAddRmsNormArgs>)
    .rows(Axis::tokens)
    .plan(plan)
    .reference<fused_add_rms_norm_ref<double>, fused_add_rms_norm_ref<OrderFree>>()
    .budget(norm_row_budget)
    .cases({{"tokens", {1, 0, 3, 64, 101}},
            {"hidden", {4096, 1, 7, 64, 96, 127, 768, 1023, 2056, 8192, 20000, 40000}},
            {"x.dtype", {DType::bf16, DType::f16, DType::f32}},
            {"x.pad", {0, 8, 3}},
            {"residual.pad", {0, 16, 1}},
            {"out.pad", {0, 8}}})
    .bench({{{"tokens", 1}, {"hidden", 4096}},
            {{"tokens", 64}, {"hidden", 4096}},
            {{"tokens", 256}, {"hidden", 8192}},
            {{"tokens", 8192}, {"hidden", 4096}},
            {{"tokens", 16384}, {"hidden", 8192}},
            {{"tokens", 65536}, {"hidden", 4096}}});

}  // namespace quern::norm
