// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/elementwise/diag_scale_backward.h"

#include "quern/base/host_dtype.h"
#include "quern/bricks/parts/plan.h"
#include "quern/bricks/rows/plan.h"
#include "quern/op/schema.h"
#include "quern/ops/elementwise/diag_scale_backward/ref.h"
#include "quern/ops/elementwise/diag_scale_backward/spec.h"

namespace quern::elementwise {

using A = DiagScaleBackwardArgs;

static const jit::Kernel<DiagScaleBackwardConfig, DiagScaleBackwardParams> chunk_kernel{
    "quern/ops/elementwise/diag_scale_backward/kernel.cuh", "diag_scale_backward_chunk"};

/// For both launches: sums of the chunks of rows that have several.
struct Parts {
  Region sums;
  i64 chunks = 1;
};

static DiagScaleBackwardParams chunk_params(const Call<A, Parts>& c) {
  const A& a = c.args;
  DiagScaleBackwardParams p{};
  p.dy = a.dy.data, p.x = a.x.data, p.diagonal = a.diagonal.data, p.dx = a.dx.data;
  p.sums = c.choice.sums ? c.region(c.choice.sums) : a.ddiagonal.data;
  p.dy_stride = a.dy.strides[0], p.x_stride = a.x.strides[0], p.dx_stride = a.dx.strides[0], p.diagonal_stride = a.diagonal.strides[0];
  p.tokens = c.problem[Axis::tokens], p.hidden = c.problem[Axis::hidden];
  p.part_stride = parts::part_elements(p.tokens);
  return p;
}

static parts::SumPartsParams sum_params(const Call<A, Parts>& c) {
  const i64 tokens = c.problem[Axis::tokens];
  return {c.region(c.choice.sums), {c.args.ddiagonal.data, nullptr}, parts::part_elements(tokens), 0, tokens, c.choice.chunks};
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  const i64 tokens = p[Axis::tokens];
  DiagScaleBackwardConfig c{p.dtype(&A::dy), p.dtype(&A::ddiagonal), p.tensor(&A::dx).present, p.tensor(&A::ddiagonal).present, {}, 0};
  i32 widest = p.vector(&A::dy);
  if (c.with_sum) widest = min_of(widest, p.vector(&A::x));
  else c.sum_dtype = c.dtype;
  if (c.with_dx) widest = min_of(widest, p.vector(&A::dx));
  const rows::DotShape shape = rows::dot_shape(c.dtype, widest, p[Axis::hidden]);
  c.dots = shape.dots, c.threads = shape.threads;
  Plan plan;
  Parts parts;
  if (c.with_sum && shape.chunks > 1) {
    c.sum_dtype = DType::f32;
    parts = {plan.scratch("parts of ddiagonal", shape.chunks * parts::part_elements(tokens) * 4), shape.chunks};
  }
  plan.launch<chunk_params>(chunk_kernel, c,
                            {.x = rows::dot_blocks(shape, tokens, device), .smem = rows::row_dots_bytes(c.dots, c.threads), .pdl = p.pdl},
                            parts);
  if (!parts.sums) return plan;
  const parts::SumPartsConfig sum = parts::sum_token_parts_config(p.dtype(&A::ddiagonal));
  plan.launch<sum_params>(parts::sum_parts_kernel, sum, parts::sum_parts_grid(sum, tokens, 1, true, p, device), parts);
  return plan;
}

static Rejection wants_something(const Problem& p) {
  if (p.tensor(&A::dx).present || p.tensor(&A::ddiagonal).present) return {};
  return {"dx", "absent", "a tensor here or in ddiagonal"};
}

/// One rounding of the result; of narrower dtypes one of f32 before it. ddiagonal: of sum |dy x|, a thread adds at most 16 products, a
/// chunk's threads 5 and 32 sums, and a lane of parts one 32nd of the chunks, then 32 lanes: each rounds by 2^-24.
static Budget budget(const Problem& p) {
  const DType dtype = p.tensors[0].dtype;
  const double parts = double(p[Axis::hidden]) * size_of(dtype) / 8192 / 32;
  return {.of_value = unit_roundoff(dtype) + (dtype == DType::f32 ? 0 : 0x1p-24), .of_magnitude = (88 + parts) * 0x1p-24};
}

static void derive(Case& which) {
  if (which["sum_f32"] != 0) which["ddiagonal.dtype"] = int(DType::f32);
  if (which["dx.present"] == 0) which["ddiagonal.present"] = 1, which["dx.in_place"] = 0;
}

QN_OP(diag_scale_backward, A, "elementwise.diag_scale_backward")
    .doc("dx = diagonal dy; ddiagonal[t] = sum_h dy[t, h] x[t, h]")
    .in("dy", &A::dy, "tokens hidden", {DType::f32, DType::f16, DType::bf16})
    .meaning("the gradient of diag_scale's out")
    .in("x", &A::x, "tokens hidden", like("dy"))
    .in("diagonal", &A::diagonal, "tokens", like("dy"))
    .strided()
    .out("dx", &A::dx, "tokens hidden", like("dy"))
    .optional()
    .may_be("dy")
    .out("ddiagonal", &A::ddiagonal, "tokens", like("diagonal", {DType::f32}))
    .optional()
    .require(wants_something)
    .rows(Axis::tokens)
    .plan(plan)
    .reference<diag_scale_backward_ref<double>, diag_scale_backward_ref<OrderFree>>()
    .budget(budget)
    .cases({{"tokens", {3, 0, 1, 64, 301}},
            {"hidden", {4096, 0, 1, 7, 8, 65, 96, 160, 320, 768, 1025, 2056, 20000, 66000}},
            {"dy.dtype", {DType::bf16, DType::f16, DType::f32}},
            {"dx.present", {true, false}},
            {"ddiagonal.present", {true, false}},
            {"sum_f32", {false, true}, "ddiagonal is f32"},
            {"dy.pad", {0, 8, 3}},
            {"x.pad", {0, 8, 1}},
            {"dx.pad", {0, 16, 1}}},
           derive)
    .bench({{{"tokens", 128}, {"hidden", 2048}},
            {{"tokens", 4096}, {"hidden", 2048}},
            {{"tokens", 4096}, {"hidden", 8192}},
            {{"tokens", 4}, {"hidden", 4194304}},
            {{"tokens", 1048576}, {"hidden", 8}}});

}  // namespace quern::elementwise
