// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/activation/silu_and_mul.h"

#include "quern/op/fp8_output.h"
#include "quern/op/schema.h"
#include "quern/ops/activation/silu_and_mul/groups_spec.h"
#include "quern/ops/activation/silu_and_mul/ref.h"
#include "quern/ops/activation/silu_and_mul/spec.h"

namespace quern::activation {

static const jit::Kernel<SiluAndMulConfig, SiluAndMulParams> chunk_kernel{"quern/ops/activation/silu_and_mul/kernel.cuh",
                                                                          "silu_and_mul_chunk"};

static const jit::Kernel<SiluAndMulGroupsConfig, SiluAndMulGroupsParams> groups_kernel{"quern/ops/activation/silu_and_mul/groups.cuh",
                                                                                      "silu_and_mul_groups"};

static SiluAndMulParams params(const Call<SiluAndMulArgs>& c) {
  const SiluAndMulArgs& a = c.args;
  return {a.x.data, a.out.data, a.x.strides[0], a.out.strides[0], c.problem[Axis::tokens], c.problem[Axis::intermediate]};
}

static SiluAndMulGroupsParams groups_params(const Call<SiluAndMulArgs>& c) {
  const SiluAndMulArgs& a = c.args;
  return {.x = a.x.data,
          .out = a.out.data,
          .scales = a.scales.data,
          .x_stride = a.x.strides[0],
          .out_stride = a.out.strides[0],
          .scale_strides = {a.scales.strides[0], a.scales.strides[1]},
          .tokens = c.problem[Axis::tokens],
          .intermediate = c.problem[Axis::intermediate]};
}

static Plan plan_groups(const Problem& p, i32 vector) {
  using A = SiluAndMulArgs;
  // 64 bytes of 16-bit gate and up a step and lane; two steps of f32 would take 250 registers
  const SiluAndMulGroupsConfig config{p.dtype(&A::x), p.dtype(&A::out), vector, size_of(p.dtype(&A::x)) == 2 ? 2 : 1, 128};
  const i64 bands = ceil_div<i64>(p[Axis::tokens], 32 / kFp8GroupLanes * config.steps);
  const i64 across = ceil_div<i64>(p[Axis::intermediate], i64(kFp8Group) * (config.threads / 32));
  Plan plan;
  plan.launch<groups_params>(groups_kernel, config, {.x = bands * across, .pdl = p.pdl});
  return plan;
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  using A = SiluAndMulArgs;
  const i64 intermediate = p[Axis::intermediate];
  // The up half starts at column `intermediate`, which limits the access as well.
  i32 vector = min_of(p.vector(&A::x), p.vector(&A::out));
  while (intermediate % vector) vector /= 2;
  if (p.tensor(&A::scales).present) return plan_groups(p, vector);
  const SiluAndMulConfig config{p.dtype(&A::x), vector, 2, 128};
  const i64 chunks = p[Axis::tokens] * ceil_div<i64>(intermediate, i64(config.threads) * config.accesses * vector);
  Plan plan;
  // Many small blocks: the hardware's own scheduling evens out the tail better than a walk over the grid.
  plan.launch<params>(chunk_kernel, config, {.x = min_of<i64>(chunks, i64(device.sms) << 16), .pdl = p.pdl});
  return plan;
}

/// One rounding of the result. The exponent's argument x * log2(e) is at most 126, which is rounded by 2^-18, times ln 2; log2(e) in f32 is off
/// by 2^-26.2 of itself, times 87; exp2 has 2^-22, the reciprocal 2^-23, a sum and two products 2^-24 each: below 1.14 * 2^-18. A
/// reciprocal below 2^-126 is flushed to 0, where x < -87: |x| 2^-126 is below 2^-119.
static Budget budget(const Problem& p) { return {.of_value = unit_roundoff(p.tensors[0].dtype) + 1.14 * 0x1p-18, .absolute = 0x1p-119}; }

QN_OP(silu_and_mul, SiluAndMulArgs, "activation.silu_and_mul")
    .doc("out = silu(x[:, :intermediate]) * x[:, intermediate:], silu(g) = g / (1 + exp(-g))")
    .source("Shazeer, GLU Variants Improve Transformer, arXiv 2002.05202")
    .in("x", &SiluAndMulArgs::x, "tokens 2*intermediate", {DType::f32, DType::f16, DType::bf16})
    .meaning("gate, then up")
    .out("out", &SiluAndMulArgs::out, "tokens intermediate", like("x", {DType::e4m3}))
    .out("scales", &SiluAndMulArgs::scales, "tokens ceil_div(intermediate,128)", {DType::f32})
    .optional()
    .meaning("of an out that is e4m3, as quant.per_token_group makes them; else absent")
    .column_major(16)
    .within({.of_value = 0x1p-17})
    .require(scales_belong_to_fp8<SiluAndMulArgs>)
    .rows(Axis::tokens)
    .plan(plan)
    .reference<silu_and_mul_ref<double>, silu_and_mul_ref<OrderFree>>()
    .budget(budget)
    .cases({{"tokens", {1, 0, 3, 64}},
            {"intermediate", {14336, 1, 7, 64, 127, 768, 1025, 2056, 4100}},
            {"x.dtype", {DType::bf16, DType::f16, DType::f32}},
            {"x.pad", {0, 8, 3}},
            {"out.pad", {0, 16, 1}},
            {"fp8", {0, 1, 2}, "out is e4m3, with scales as the FP8 GEMM reads them (1) or row-major (2)"}},
           derive_fp8_output)
    .bench({{{"tokens", 1}, {"intermediate", 14336}},
            {{"tokens", 64}, {"intermediate", 14336}},
            {{"tokens", 4096}, {"intermediate", 14336}},
            {{"tokens", 16384}, {"intermediate", 14336}},
            {{"tokens", 64}, {"intermediate", 14336}, {"fp8", 1}},
            {{"tokens", 16384}, {"intermediate", 14336}, {"fp8", 1}}});

}  // namespace quern::activation
