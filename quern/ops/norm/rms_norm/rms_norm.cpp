// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/norm/rms_norm.h"

#include "quern/ops/norm/norm_form/norm_form.h"
#include "quern/ops/norm/rms_norm/ref.h"

namespace quern::norm {

using A = RmsNormArgs;

static NormRowParams params(const Call<A>& c) {
  const A& a = c.args;
  return {
      a.x.data, a.weight.data, nullptr, a.out.data, a.x.strides[0], 0, a.out.strides[0], c.problem[Axis::tokens], c.problem[Axis::hidden],
      a.eps};
}

/// norm_row has the plainest form and is the fastest; norm_row_form has all others.
static Plan plan(const Problem& p, const DeviceInfo& device) {
  if (p.dtype(&A::weight) != p.dtype(&A::x) || p.attr(&A::weight_bias) != 0 || fp8_scales_of<A>(p) != Fp8Scales::none)
    return plan_norm_form<A>(p, device, false, p[Axis::tokens], p[Axis::hidden]);
  const i32 vector = min_of(min_of(p.vector(&A::x), p.vector(&A::out)), p.vector(&A::weight));
  const NormRowConfig config = norm_row_config(p.dtype(&A::x), vector, p[Axis::hidden], false);
  Plan plan;
  plan.launch<params>(norm_row_kernel, config,
                      {.x = norm_row_blocks(config, p[Axis::tokens], device), .smem = norm_row_smem(config).bytes, .pdl = p.pdl});
  return plan;
}

QN_OP(rms_norm, RmsNormArgs, "norm.rms_norm")
    .doc("out = x / sqrt(mean(x^2) + eps) * (weight + weight_bias)")
    .source("Zhang and Sennrich, Root Mean Square Layer Normalization, arXiv 1910.07467")
    .in("x", &A::x, "tokens hidden", {DType::f32, DType::f16, DType::bf16})
    .meaning("a row whose sum of squares reaches 2^128, as one value of 1.8e19 does, gives zeros")
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
    .backward("norm.rms_norm_backward", {{"dy", "out"}, {"dx", "x"}, {"dw", "weight"}})
    .plan(plan)
    .reference<rms_norm_ref<double>, rms_norm_ref<OrderFree>>()
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
            {"out.pad", {0, 16, 1}},
            {"fp8",
             {0, 0, 1, 2, 3, 4},
             "out is e4m3, with scales as the FP8 GEMM reads them (1), row-major (2), a scale a row (3) or one static scale (4)"}},
           derive_norm)
    .bench({{{"tokens", 1}, {"hidden", 4096}},
            {{"tokens", 64}, {"hidden", 4096}},
            {{"tokens", 256}, {"hidden", 8192}},
            {{"tokens", 8192}, {"hidden", 4096}},
            {{"tokens", 16384}, {"hidden", 8192}},
            {{"tokens", 65536}, {"hidden", 4096}}});

}  // namespace quern::norm
