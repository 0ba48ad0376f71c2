// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/quant/transform_scales.h"

#include "quern/op/schema.h"
#include "quern/ops/quant/transform_scales/ref.h"
#include "quern/ops/quant/transform_scales/spec.h"
#include "quern/ops/quant/values/values.h"

namespace quern::quant {

static const jit::Kernel<TransformScalesConfig, TransformScalesParams> rows_kernel{"quern/ops/quant/transform_scales/kernel.cuh",
                                                                                   "transform_scales_rows"};

static TransformScalesParams params(const Call<TransformScalesArgs>& c) {
  const TransformScalesArgs& a = c.args;
  return {.x = a.x.data,
          .out = a.out.data,
          .x_strides = {a.x.strides[0], a.x.strides[1]},
          .out_strides = {a.out.strides[0], a.out.strides[1]},
          .m = c.problem[Axis::m],
          .groups = c.problem[Axis::groups]};
}

static Plan plan(const Problem& p, const DeviceInfo&) {
  using A = TransformScalesArgs;
  const i64 m = p[Axis::m], groups = p[Axis::groups];
  // Of a strided tensor plan knows that columns are neighbours only where there are no gaps
  i32 vector = p.tensor(&A::x).contiguous ? p.vector(&A::x) : 1;
  while (groups % vector) vector /= 2;
  const TransformScalesConfig config{vector, 128};
  const i64 tiles = ceil_div<i64>(m, config.threads) * ceil_div<i64>(groups, kTransformColumns);
  Plan plan;
  plan.launch<params>(rows_kernel, config, {.x = tiles, .pdl = p.pdl});
  return plan;
}

static void derive(Case& which) {
  const i64 m = i64(which["m"]);
  if (which["mn_major"] == 0) return;
  which["out.transposed"] = 1;
  which["out.pad"] = double(round_up<i64>(m, 4) - m);
}

QN_OP(transform_scales, TransformScalesArgs, "quant.transform_scales")
    .doc("out = x, in the layout of scales that the FP8 GEMM reads")
    .in("x", &TransformScalesArgs::x, "m groups", {DType::f32})
    .strided()
    .out("out", &TransformScalesArgs::out, "m groups", {DType::f32})
    .meaning("with the strides {1, round_up(m, 4)} the FP8 GEMM reads them as they are")
    .column_major(16)
    .rows(Axis::m)
    .plan(plan)
    .reference<transform_scales_ref<double>, transform_scales_ref<OrderFree>>()
    .budget(exact)
    .cases({{"m", {129, 0, 1, 3, 8, 37, 128, 300}},
            {"groups", {56, 0, 1, 7, 8, 9, 12, 18}},
            {"mn_major", {1, 0}, "out lies as the FP8 GEMM reads it"},
            {"out.pad", {0, 5}},
            {"x.transposed", {false, true}},
            {"x.pad", {0, 4, 3}}},
           derive)
    .bench({{{"m", 64}, {"groups", 56}}, {{"m", 4096}, {"groups", 56}}, {{"m", 65536}, {"groups", 128}}});

}  // namespace quern::quant
