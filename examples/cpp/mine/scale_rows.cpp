// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "mine/scale_rows.h"

#include "mine/scale_rows_ref.h"
#include "mine/scale_rows_spec.h"
#include "quern/base/host_dtype.h"
#include "quern/op/schema.h"

namespace quern::mine {

using A = ScaleRowsArgs;

static const jit::Kernel<ScaleRowsConfig, ScaleRowsParams> row_kernel{"mine/scale_rows.cuh", "scale_rows_row"};

static ScaleRowsParams params(const Call<A>& c) {
  const A& a = c.args;
  return {.x = a.x.data,
          .factor = static_cast<const float*>(a.factor.data),
          .out = a.out.data,
          .x_stride = a.x.strides[0],
          .out_stride = a.out.strides[0],
          .factor_stride = a.factor.strides[0],
          .tokens = c.problem[Axis::tokens],
          .hidden = c.problem[Axis::hidden]};
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  i32 vector = min_of(p.vector(&A::x), p.vector(&A::out));
  while (p[Axis::hidden] % vector) vector /= 2;
  Plan plan;
  plan.launch<params>(row_kernel, ScaleRowsConfig{p.dtype(&A::x), vector, 128},
                      {.x = min_of<i64>(p[Axis::tokens], i64(device.sms) * 16), .pdl = p.pdl});
  return plan;
}

/// One rounding of the product in f32, one of the result.
static Budget budget(const Problem& p) { return {.of_value = unit_roundoff(p.dtype(&A::x)) + 0x1p-23}; }

QN_OP(scale_rows, ScaleRowsArgs, "mine.scale_rows")
    .doc("out[t, h] = x[t, h] * factor[t]")
    .in("x", &A::x, "tokens hidden", {DType::f32, DType::f16, DType::bf16})
    .in("factor", &A::factor, "tokens", {DType::f32})
    .strided()
    .out("out", &A::out, "tokens hidden", like("x"))
    .rows(Axis::tokens)
    .plan(plan)
    .reference<scale_rows_ref>()
    .budget(budget)
    .cases({{"tokens", {3, 0, 1, 64}},
            {"hidden", {4096, 1, 7, 96, 127, 1025}},
            {"x.dtype", {DType::bf16, DType::f16, DType::f32}},
            {"x.pad", {0, 8, 3}},
            {"out.pad", {0, 16, 1}}})
    .bench({{{"tokens", 1}, {"hidden", 4096}}, {{"tokens", 4096}, {"hidden", 8192}}});

}  // namespace quern::mine
