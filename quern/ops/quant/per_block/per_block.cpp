// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/quant/per_block.h"

#include "quern/op/schema.h"
#include "quern/ops/quant/per_block/ref.h"
#include "quern/ops/quant/per_block/spec.h"
#include "quern/ops/quant/values/values.h"

namespace quern::quant {

static const jit::Kernel<PerBlockConfig, PerBlockParams> tile_kernel{"quern/ops/quant/per_block/kernel.cuh", "per_block_tile"};

static PerBlockParams params(const Call<PerBlockArgs>& c) {
  const PerBlockArgs& a = c.args;
  return {.x = a.x.data,
          .q = a.q.data,
          .scales = a.scales.data,
          .x_stride = a.x.strides[0],
          .q_stride = a.q.strides[0],
          .scale_strides = {a.scales.strides[0], a.scales.strides[1]},
          .n = c.problem[Axis::n],
          .k = c.problem[Axis::k],
          .power_of_two = a.power_of_two,
          .amax_floor = a.amax_floor};
}

static Plan plan(const Problem& p, const DeviceInfo&) {
  using A = PerBlockArgs;
  const i64 n = p[Axis::n], k = p[Axis::k];
  i32 vector = min_of(p.vector(&A::x), p.vector(&A::q));
  while (k % vector) vector /= 2;
  const PerBlockConfig config{p.dtype(&A::x), p.dtype(&A::q), vector, 512};
  const i64 blocks = ceil_div<i64>(n, kFp8Group) * ceil_div<i64>(k, kFp8Group);
  Plan plan;
  plan.launch<params>(tile_kernel, config, {.x = blocks, .smem = per_block_smem_bytes(config.threads), .pdl = p.pdl});
  return plan;
}

static void generate(PerBlockArgs& args, const Case& which, Random&) { put_special_values(args.x, kFp8Group, kFp8Group, which); }

QN_OP(per_block, PerBlockArgs, "quant.per_block")
    .doc(
        "scales[b, c] = max(max |x[128b:128b+128, 128c:128c+128]|, amax_floor) / largest(q); q = x * (1 / scales), rounded to nearest even")
    .source("DeepSeek-AI, DeepSeek-V3 Technical Report, arXiv 2412.19437, section 3.3.2")
    .in("x", &PerBlockArgs::x, "n k", {DType::bf16, DType::f16, DType::f32})
    .out("q", &PerBlockArgs::q, "n k", {DType::e4m3, DType::e5m2})
    .out("scales", &PerBlockArgs::scales, "ceil_div(n,128) ceil_div(k,128)", {DType::f32})
    .strided()
    .attr("power_of_two", &PerBlockArgs::power_of_two)
    .meaning("scales are rounded up to powers of two (UE8M0)")
    .with(state_amax_floor<PerBlockArgs>)
    .plan(plan)
    .reference<per_block_ref<double>, per_block_ref<OrderFree>>()
    .generate<generate>()
    .budget(exact)
    .cases({{"n", {130, 0, 1, 31, 128, 384}},
            {"k", {768, 0, 1, 7, 64, 127, 128, 129, 200, 1000}},
            {"x.dtype", {DType::bf16, DType::f16, DType::f32}},
            {"q.dtype", {DType::e4m3, DType::e5m2}},
            {"power_of_two", {false, true}},
            {"amax_floor", {1e-4, 1e-10}},
            {"special", {0, 1}, "x has blocks of zeros, tiny and largest values, infinities and NaN"},
            {"scales.transposed", {false, true}},
            {"scales.pad", {0, 3}},
            {"x.pad", {0, 8, 3}},
            {"q.pad", {0, 16, 1}}})
    .bench({{{"n", 4096}, {"k", 7168}}, {{"n", 24576}, {"k", 1536}}, {{"n", 7168}, {"k", 16384}}, {{"n", 65536}, {"k", 7168}}});

}  // namespace quern::quant
