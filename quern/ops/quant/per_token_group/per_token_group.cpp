// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/quant/per_token_group.h"

#include "quern/op/schema.h"
#include "quern/ops/quant/per_token_group/ref.h"
#include "quern/ops/quant/per_token_group/spec.h"
#include "quern/ops/quant/values/values.h"

namespace quern::quant {

static const jit::Kernel<PerTokenGroupConfig, PerTokenGroupParams> tile_kernel{"quern/ops/quant/per_token_group/kernel.cuh",
                                                                               "per_token_group_tile"};

static PerTokenGroupParams params(const Call<PerTokenGroupArgs>& c) {
  const PerTokenGroupArgs& a = c.args;
  return {.x = a.x.data,
          .q = a.q.data,
          .scales = a.scales.data,
          .x_stride = a.x.strides[0],
          .q_stride = a.q.strides[0],
          .scale_strides = {a.scales.strides[0], a.scales.strides[1]},
          .m = c.problem[Axis::m],
          .k = c.problem[Axis::k],
          .power_of_two = a.power_of_two,
          .amax_floor = a.amax_floor};
}

static Plan plan(const Problem& p, const DeviceInfo&) {
  using A = PerTokenGroupArgs;
  const i64 m = p[Axis::m], k = p[Axis::k];
  i32 vector = min_of(p.vector(&A::x), p.vector(&A::q));
  while (k % vector) vector /= 2;
  // 32 bytes of bf16 a step and lane: two steps are 64 bytes a thread in flight
  const PerTokenGroupConfig config{
      p.dtype(&A::x), p.dtype(&A::q), vector, 2, 128, p.attr(&A::group_size), p.dtype(&A::scales) == DType::u8};
  const i64 bands = ceil_div<i64>(m, 32 / kFp8GroupLanes * config.steps);
  const i64 tiles = bands * ceil_div<i64>(k, i64(kFp8Group) * (config.threads / 32));
  Plan plan;
  // Many small blocks: the hardware's own scheduling evens out the tail better than a walk over the grid.
  plan.launch<params>(tile_kernel, config, {.x = tiles, .pdl = p.pdl});
  return plan;
}

static void derive(Case& which) {
  const i64 m = i64(which["m"]);
  if (which["mn_major"] == 0) return;
  which["scales.transposed"] = 1;
  which["scales.pad"] = double(round_up<i64>(m, 4) - m);
}

static void generate(PerTokenGroupArgs& args, const Case& which, Random&) { put_special_values(args.x, 1, args.group_size, which); }

static Rejection group_fits(const Problem& p) {
  const i32 group = p.attr(&PerTokenGroupArgs::group_size);
  return group == 32 || group == 64 || group == 128 ? Rejection{} : Rejection{"group_size", group, "32, 64 or 128", 0};
}

QN_OP(per_token_group, PerTokenGroupArgs, "quant.per_token_group")
    .doc("scales[i, g] = max(max |x[i, group g]|, amax_floor) / largest(q); q = x * (1 / scales), rounded to nearest even")
    .source("DeepSeek-AI, DeepSeek-V3 Technical Report, arXiv 2412.19437, section 3.3.2")
    .in("x", &PerTokenGroupArgs::x, "m k", {DType::bf16, DType::f16, DType::f32})
    .attr("power_of_two", &PerTokenGroupArgs::power_of_two)
    .meaning("scales are rounded up to powers of two (UE8M0); those in E8M0 always are")
    .attr("group_size", &PerTokenGroupArgs::group_size)
    .meaning("columns that share a scale: 32, 64 or 128")
    .with(state_amax_floor<PerTokenGroupArgs>)
    .out("q", &PerTokenGroupArgs::q, "m k", {DType::e4m3, DType::e5m2, DType::i8})
    .meaning("-128 is no value of i8")
    .out("scales", &PerTokenGroupArgs::scales, "m ceil_div(k,group_size)", {DType::f32, DType::u8})
    .meaning(
        "u8: E8M0, the byte e of 2^(e - 127). Of groups of 128 in f32 with the strides {1, round_up(m, 4)} the FP8 GEMM reads them as they are")
    .column_major(16)
    .require(group_fits)
    .rows(Axis::m)
    .plan(plan)
    .reference<per_token_group_ref<double>, per_token_group_ref<OrderFree>>()
    .generate<generate>()
    .budget(exact)
    .cases({{"m", {5, 0, 1, 3, 8, 37, 64}},
            {"k", {1024, 0, 1, 7, 64, 127, 128, 129, 768, 1000, 1160, 7168}},
            {"mn_major", {1, 0}, "scales lie as the FP8 GEMM reads them"},
            {"scales.pad", {0, 5}},
            {"x.dtype", {DType::bf16, DType::f16, DType::f32}},
            {"q.dtype", {DType::e4m3, DType::e5m2, DType::i8}},
            {"scales.dtype", {DType::f32, DType::u8}},
            {"group_size", {128, 32, 64}},
            {"power_of_two", {false, true}},
            {"amax_floor", {1e-4, 1e-10}},
            {"special", {0, 1}, "x has groups of zeros, tiny and largest values, infinities and NaN"},
            {"x.pad", {0, 8, 3}},
            {"q.pad", {0, 16, 1}}},
           derive)
    .bench({{{"m", 1}, {"k", 7168}},
            {{"m", 64}, {"k", 7168}},
            {{"m", 4096}, {"k", 7168}},
            {{"m", 16384}, {"k", 7168}},
            {{"m", 32768}, {"k", 4096}},
            {{"m", 65536}, {"k", 2048}},
            {{"m", 16384}, {"k", 7168}, {"mn_major", 0}},
            {{"m", 16384}, {"k", 7168}, {"group_size", 64}},
            {{"m", 16384}, {"k", 7168}, {"group_size", 32}, {"scales.dtype", DType::u8}},
            {{"m", 16384}, {"k", 7168}, {"q.dtype", DType::i8}}});

}  // namespace quern::quant
