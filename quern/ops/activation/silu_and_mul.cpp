// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/activation/silu_and_mul.h"

#include "quern/op/schema.h"
#include "quern/ops/activation/silu_and_mul_ref.h"
#include "quern/ops/activation/silu_and_mul_spec.h"

namespace quern::activation {

static const jit::Kernel<SiluAndMulConfig, SiluAndMulParams> chunk_kernel{"quern/ops/activation/silu_and_mul.cuh",
                                                                          "silu_and_mul_chunk"};

static SiluAndMulParams params(const Call<SiluAndMulArgs>& c) {
  const SiluAndMulArgs& a = c.args;
  return {a.x.data, a.out.data, a.x.strides[0], a.out.strides[0], c.problem[Axis::tokens], c.problem[Axis::intermediate]};
}

static Plan plan(const Problem& p, const DeviceInfo& device, const Knobs&) {
  using A = SiluAndMulArgs;
  const i64 intermediate = p[Axis::intermediate];
  // The up half starts at column `intermediate`, which limits the access as well.
  i32 vector = min_of(p.vector(&A::x), p.vector(&A::out));
  while (intermediate % vector) vector /= 2;
  const SiluAndMulConfig config{p.dtype(&A::x), vector, 2, 128};
  const i64 chunks = p[Axis::tokens] * ceil_div<i64>(intermediate, i64(config.threads) * config.accesses * vector);
  Plan plan;
  // Many small blocks: the hardware's own scheduling evens out the tail better than a walk over the grid.
  plan.launch<params>(chunk_kernel, config, {.x = min_of<i64>(chunks, i64(device.sms) << 16), .pdl = p.pdl});
  return plan;
}

/// One rounding; exp2 and the reciprocal are approximate to 2^-22, and the exponent's argument x*log2(e) carries |x| * 2^-24. A
/// reciprocal below 2^-126 is flushed to 0, where x < -87: |x| 2^-126 is below 2^-119.
static Budget budget(const Problem& p) { return {.of_value = unit_roundoff(p.tensors[0].dtype) + 0x1p-18, .absolute = 0x1p-119}; }

QN_OP(silu_and_mul, SiluAndMulArgs, "activation.silu_and_mul")
    .doc("out = silu(x[:, :intermediate]) * x[:, intermediate:], silu(g) = g / (1 + exp(-g))")
    .source("Shazeer, GLU Variants Improve Transformer, arXiv 2002.05202")
    .in("x", &SiluAndMulArgs::x, "tokens 2*intermediate", {DType::f32, DType::f16, DType::bf16})
    .meaning("gate, then up")
    .out("out", &SiluAndMulArgs::out, "tokens intermediate", like("x"))
    .rows(Axis::tokens)
    .plan(plan)
    .reference<silu_and_mul_ref<double>, silu_and_mul_ref<OrderFree>>()
    .budget(budget)
    .cases({{"tokens", {1, 0, 3, 64}},
            {"intermediate", {14336, 1, 7, 64, 127, 768, 1025, 2056, 4100}},
            {"x.dtype", {DType::bf16, DType::f16, DType::f32}},
            {"x.pad", {0, 8, 3}},
            {"out.pad", {0, 16, 1}}})
    .bench({{{"tokens", 1}, {"intermediate", 14336}},
            {{"tokens", 64}, {"intermediate", 14336}},
            {{"tokens", 4096}, {"intermediate", 14336}},
            {{"tokens", 16384}, {"intermediate", 14336}}});

}  // namespace quern::activation
