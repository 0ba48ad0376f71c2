// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/scaled/sm90.h"

namespace quern::gemm {

using A = ScaledArgs;

Ending ending_of(const Problem& p) { return {DType::bf16, p.dtype(&A::out), p.tensor(&A::c).present, i32(Activation::none)}; }

Rejection rejects_scaled_sm90_operands(const Problem& p, const DeviceInfo& device) {
  if (device.arch.number != 90) return {"arch", device.arch.number, "{}: wgmma", 90};
  const i32 vector = min_of(p.vector(&A::a), p.vector(&A::b));
  if (vector < 16) return {"alignment of a and b", vector, "{} bytes for every row", 16};
  if (p.tensor(&A::out).alignment < 16) return {"alignment of out", p.tensor(&A::out).alignment, "{} bytes for every row", 16};
  if (p.tensor(&A::c).alignment < 16) return {"alignment of c", p.tensor(&A::c).alignment, "{} bytes for every row", 16};
  if (p[Axis::n] % 8 != 0) return {"n", p[Axis::n], "a multiple of {}", 8};
  if (p[Axis::k] == 0) return {"k", 0, "a positive one", 0};
  for (const Axis axis : {Axis::m, Axis::n, Axis::k})
    if (p[axis] > 0x7fffff00) return {name(axis), p[axis], "below 2^31", 0};
  return {};
}

i32 column_scales(const Problem& p) {
  if (p[Axis::k] > kScaledGroup && p[Axis::scale_columns_a] <= 1 && p[Axis::scale_columns_b] <= 1) return 1;
  return p[Axis::n] > 1 && p[Axis::scale_rows_b] == p[Axis::n] ? 2 : 0;
}

ScaledSm90Params sm90_params(const Call<ScaledArgs>& c, i32 box_a, i32 box_b, i32 fetched) {
  const ScaledArgs& a = c.args;
  const Problem& p = c.problem;
  const auto map = [&](const TensorView& operand, i32 box) {
    TensorMapSpec spec = sm90_operand(operand, box);
    spec.fetched = fetched;
    return c.device.make_tensor_map(spec);
  };
  return {.gemm = {.a = map(a.a, box_a),
                   .b = map(a.b, box_b),
                   .bias = a.bias.data,
                   .out = a.out.data,
                   .out_stride = a.out.strides[0],
                   .m = i32(p[Axis::m]),
                   .n = i32(p[Axis::n]),
                   .k = i32(p[Axis::k]),
                   .rows = box_a,
                   .parts = 1,
                   .pdl = p.pdl,
                   .bias_dtype = p.dtype(&A::bias),
                   .c = {a.c.data, a.c.strides[0], p.dtype(&A::c), p.tensor(&A::c).alignment}},
          .scales_a = scales_of(a.scales_a, p[Axis::m]),
          .scales_b = scales_of(a.scales_b, p[Axis::n])};
}

i64 most_swapped_rows(const Problem& p) { return p[Axis::n] > 64 * kSm90Sms ? 32 : 128; }
bool takes_few_rows(const Problem& p) {
  const bool few = p[Axis::m] <= 128 || 2 * ceil_div<i64>(p[Axis::m], 128) * ceil_div<i64>(p[Axis::n], 128) < kSm90Sms;
  return few && (p[Axis::m] <= most_swapped_rows(p) || p[Axis::n] <= 64 * kSm90Sms);
}

}  // namespace quern::gemm
