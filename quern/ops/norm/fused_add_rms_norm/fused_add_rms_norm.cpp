// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/norm/fused_add_rms_norm.h"

#include "quern/op/fp8_output.h"
#include "quern/ops/norm/fused_add_rms_norm/ref.h"
#include "quern/ops/norm/norm_row/norm_row.h"

namespace quern::norm {

static NormRowParams params(const Call<FusedAddRmsNormArgs>& c) {
  const FusedAddRmsNormArgs& a = c.args;
  return {a.x.data, a.weight.data, a.residual.data, a.out.data, a.x.strides[0], a.residual.strides[0], a.out.strides[0],
          c.problem[Axis::tokens], c.problem[Axis::hidden], a.eps};
}

static NormRowGroupsParams groups_params(const Call<FusedAddRmsNormArgs>& c) {
  const TensorView& scales = c.args.scales;
  return {params(c), scales.data, {scales.strides[0], scales.strides[1]}};
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  using A = FusedAddRmsNormArgs;
  const i32 vector = min_of(min_of(p.vector(&A::x), p.vector(&A::residual)), min_of(p.vector(&A::out), p.vector(&A::weight)));
  const bool groups = p.tensor(&A::scales).present;
  NormRowConfig config = norm_row_config(p.dtype(&A::x), vector, p[Axis::hidden], true);
  // At 64 registers groups would spill 16 bytes
  while (groups && config.min_blocks > 1 && 65536 / (config.threads * config.min_blocks) < 72) --config.min_blocks;
  const Grid grid{.x = norm_row_blocks(config, p[Axis::tokens], device), .smem = norm_row_smem(config).bytes, .pdl = p.pdl};
  Plan plan;
  if (groups) plan.launch<groups_params>(norm_row_groups_kernel, config, grid);
  else plan.launch<params>(norm_row_kernel, config, grid);
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
    .out("out", &FusedAddRmsNormArgs::out, "tokens hidden", like("x", {DType::e4m3}))
    .may_be("x")
    .meaning("e4m3 with scales; it must not overlap x then")
    .out("scales", &FusedAddRmsNormArgs::scales, "tokens ceil_div(hidden,128)", {DType::f32})
    .optional()
    .meaning("of an out that is e4m3, as quant.per_token_group makes them; else absent")
    .column_major(16)
    .within({.of_value = 0x1p-18, .of_magnitude = 0x1p-23})
    .attr("eps", &FusedAddRmsNormArgs::eps)
    .meaning("added to the mean square, from 0 to 1e30")
    .require(eps_fits<FusedAddRmsNormArgs>)
    .require(scales_belong_to_fp8<FusedAddRmsNormArgs>)
    .rows(Axis::tokens)
    .plan(plan)
    .reference<fused_add_rms_norm_ref<double>, fused_add_rms_norm_ref<OrderFree>>()
    .budget(norm_row_budget)
    .cases({{"tokens", {1, 0, 3, 64, 101}},
            {"hidden", {4096, 1, 7, 64, 96, 127, 768, 1023, 2056, 8192, 20000, 40000}},
            {"x.dtype", {DType::bf16, DType::f16, DType::f32}},
            {"x.pad", {0, 8, 3}},
            {"residual.pad", {0, 16, 1}},
            {"out.pad", {0, 8}},
            {"fp8", {0, 1, 2}, "out is e4m3, with scales as the FP8 GEMM reads them (1) or row-major (2)"}},
           derive_fp8_output)
    .bench({{{"tokens", 1}, {"hidden", 4096}},
            {{"tokens", 64}, {"hidden", 4096}},
            {{"tokens", 256}, {"hidden", 8192}},
            {{"tokens", 8192}, {"hidden", 4096}},
            {{"tokens", 16384}, {"hidden", 8192}},
            {{"tokens", 65536}, {"hidden", 4096}},
            {{"tokens", 64}, {"hidden", 7168}, {"fp8", 1}},
            {{"tokens", 16384}, {"hidden", 7168}, {"fp8", 1}}});

}  // namespace quern::norm
