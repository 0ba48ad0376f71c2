// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/quant/per_token.h"

#include "quern/bricks/rows/plan.h"
#include "quern/op/schema.h"
#include "quern/ops/quant/per_token/ref.h"
#include "quern/ops/quant/per_token/spec.h"
#include "quern/ops/quant/values/values.h"

namespace quern::quant {

using A = PerTokenArgs;

static const jit::Kernel<PerTokenConfig, PerTokenParams> row_kernel{"quern/ops/quant/per_token/kernel.cuh", "per_token_row"};

static PerTokenParams params(const Call<A>& c) {
  const A& a = c.args;
  return {.x = a.x.data,
          .q = a.q.data,
          .scales = a.scales.data,
          .upper_bound = a.scale_upper_bound.data,
          .x_stride = a.x.strides[0],
          .q_stride = a.q.strides[0],
          .scale_stride = a.scales.strides[0],
          .m = c.problem[Axis::m],
          .k = c.problem[Axis::k],
          .amax_floor = a.amax_floor,
          .unused = 0};
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  const rows::RowShape shape = rows::row_shape(p.dtype(&A::x), min_of(p.vector(&A::x), p.vector(&A::q)), p[Axis::k]);
  const PerTokenConfig config{p.dtype(&A::x), p.dtype(&A::q), p.tensor(&A::scale_upper_bound).present, shape.units, shape.threads};
  Plan plan;
  plan.launch<params>(
      row_kernel, config,
      {.x = rows::row_blocks(shape, p[Axis::m], device), .smem = rows::row_reducer_bytes(config.units, config.threads), .pdl = p.pdl});
  return plan;
}

/// A row is special as a whole; the bound is below the largest |x| of most rows.
static void generate(A& args, const Case& which, Random& random) {
  put_special_values(args.x, 1, max_of<i64>(1, args.x.shape[1]), which);
  if (args.scale_upper_bound.present() && which.at("proof") == 0)
    store_value(args.scale_upper_bound.data, DType::f32, 1.5 + random.uniform());
}

QN_OP(per_token, A, "quant.per_token")
    .doc("scales[i] = max(min(max |x[i]|, scale_upper_bound), amax_floor) / largest(q); q = x * (1 / scales), rounded to nearest even")
    .in("x", &A::x, "m k", {DType::bf16, DType::f16, DType::f32})
    .out("q", &A::q, "m k", {DType::e4m3, DType::e5m2, DType::i8})
    .meaning("-128 is no value of i8")
    .out("scales", &A::scales, "m 1", {DType::f32})
    .meaning("as gemm.scaled reads them, one a row")
    .strided()
    .in("scale_upper_bound", &A::scale_upper_bound, "1", {DType::f32})
    .optional()
    .meaning("positive: the largest |x| of a row counts as at most this, so that larger values are cut")
    .with(state_amax_floor<A>)
    .rows(Axis::m)
    .plan(plan)
    .reference<per_token_ref<double>, per_token_ref<OrderFree>>()
    .generate<generate>()
    .budget(exact)
    .cases({{"m", {5, 0, 1, 3, 64, 101}},
            {"k", {4096, 0, 1, 7, 64, 127, 768, 1023, 2056, 8192, 20000, 40000}},
            {"x.dtype", {DType::bf16, DType::f16, DType::f32}},
            {"q.dtype", {DType::e4m3, DType::e5m2, DType::i8}},
            {"scale_upper_bound.present", {false, true}},
            {"amax_floor", {1e-4, 1e-10}},
            {"special", {0, 1}, "x has rows of zeros, tiny and largest values, infinities and NaN"},
            {"scales.pad", {0, 3}},
            {"x.pad", {0, 8, 3}},
            {"q.pad", {0, 16, 1}}})
    .bench({{{"m", 1}, {"k", 4096}},
            {{"m", 64}, {"k", 7168}},
            {{"m", 4096}, {"k", 4096}},
            {{"m", 16384}, {"k", 7168}},
            {{"m", 16384}, {"k", 7168}, {"q.dtype", DType::i8}},
            {{"m", 4096}, {"k", 28672}}});

}  // namespace quern::quant
