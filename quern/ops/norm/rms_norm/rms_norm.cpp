// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/norm/rms_norm.h"

#include "quern/ops/norm/norm_row/norm_row.h"
#include "quern/ops/norm/rms_norm/ref.h"

namespace quern::norm {

static NormRowParams params(const Call<RmsNormArgs>& c) {
  const RmsNormArgs& a = c.args;
  return {a.x.data, a.weight.data, nullptr, a.out.data, a.x.strides[0], 0, a.out.strides[0],
          c.problem[Axis::tokens], c.problem[Axis::hidden], a.eps};
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  using A = RmsNormArgs;
  const i32 vector = min_of(min_of(p.vector(&A::x), p.vector(&A::out)), p.vector(&A::weight));
  const NormRowConfig config = norm_row_config(p.dtype(&A::x), vector, p[Axis::hidden], false);
  Plan plan;
  plan.launch<params>(norm_row_kernel, config,
                      {.x = norm_row_blocks(config, p[Axis::tokens], device), .smem = norm_row_smem(config).bytes, .pdl = p.pdl});
  return plan;
}

QN_OP(rms_norm, RmsNormArgs, "norm.rms_norm")
    .doc("out = x / sqrt(mean(x^2) + eps) * weight")
    .source("Zhang and Sennrich, Root Mean Square Layer Normalization, arXiv 1910.07467")
    .in("x", &RmsNormArgs::x, "tokens hidden", {DType::f32, DType::f16, DType::bf16})
    .meaning("a row whose sum of squares reaches 2^128, as one value of 1.8e19 does, gives zeros")
    .in("weight", &RmsNormArgs::weight, "hidden", like("x"))
    .meaning("with pdl, read before the kernels before have ended")
    .out("out", &RmsNormArgs::out, "tokens hidden", like("x"))
    .may_be("x")
    .attr("eps", &RmsNormArgs::eps)
    .meaning("added to the mean square, from 0 to 1e30")
    .require(eps_fits<RmsNormArgs>)
    .rows(Axis::tokens)
    .backward("norm.rms_norm_backward", {{"dy", "out"}, {"dx", "x"}, {"dw", "weight"}})
    .plan(plan)
    .reference<rms_norm_ref<double>, rms_norm_ref<OrderFree>>()
    .budget(norm_row_budget)
    .cases({{"tokens", {1, 0, 3, 64, 101}},
            {"hidden", {4096, 1, 7, 64, 96, 127, 768, 1023, 2056, 8192, 20000, 40000}},
            {"x.dtype", {DType::bf16, DType::f16, DType::f32}},
            {"x.pad", {0, 8, 3}},
            {"out.pad", {0, 16, 1}}})
    .bench({{{"tokens", 1}, {"hidden", 4096}},
            {{"tokens", 64}, {"hidden", 4096}},
            {{"tokens", 256}, {"hidden", 8192}},
            {{"tokens", 8192}, {"hidden", 4096}},
            {{"tokens", 16384}, {"hidden", 8192}},
            {{"tokens", 65536}, {"hidden", 4096}}});

}  // namespace quern::norm
