// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/linear_rowsum.h"

#include "quern/base/host_dtype.h"
#include "quern/bricks/rows/plan.h"
#include "quern/ops/gemm/linear_rowsum/ref.h"
#include "quern/ops/gemm/linear_rowsum/spec.h"
#include "quern/ops/gemm/rowsum/rowsum.h"

namespace quern::gemm {

using A = LinearRowsumArgs;

static const jit::Kernel<LinearRowsumConfig, LinearRowsumParams> dots_kernel{"quern/ops/gemm/linear_rowsum/kernel.cuh",
                                                                             "linear_rowsum_dots"};

/// For all launches: sums over parts of b's rows, the sum of the bias, and sums over the chunks of a's rows where there are several.
struct Parts {
  Region columns, bias, rows;
  i64 blocks = 0, chunks = 1;
};

static ColumnSumsParams column_params(const Call<A, Parts>& c) {
  const A& a = c.args;
  const i64 n = c.problem[Axis::n], k = c.problem[Axis::k];
  return {a.b.data,
          a.bias.data,
          c.region(c.choice.columns),
          reinterpret_cast<float*>(c.region(c.choice.bias)),
          a.b.strides[0],
          a.bias.strides[0],
          parts::part_elements(k),
          n,
          k,
          n,
          c.choice.blocks};
}

static parts::SumPartsParams column_sum_params(const Call<A, Parts>& c) {
  const i64 k = c.problem[Axis::k];
  return {c.region(c.choice.columns), {c.args.column_sums.data, nullptr}, parts::part_elements(k), 0, k, row_parts(c.problem[Axis::n])};
}

static LinearRowsumParams dots_params(const Call<A, Parts>& c) {
  const A& a = c.args;
  const i64 m = c.problem[Axis::m];
  return {a.a.data,
          static_cast<const float*>(a.column_sums.data),
          reinterpret_cast<const float*>(c.region(c.choice.bias)),
          c.choice.rows ? c.region(c.choice.rows) : a.out.data,
          a.a.strides[0],
          parts::part_elements(m),
          m,
          c.problem[Axis::k]};
}

static parts::SumPartsParams row_sum_params(const Call<A, Parts>& c) {
  const i64 m = c.problem[Axis::m];
  return {c.region(c.choice.rows), {c.args.out.data, nullptr}, parts::part_elements(m), 0, m, c.choice.chunks};
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  const i64 m = p[Axis::m], n = p[Axis::n], k = p[Axis::k];
  const DType dtype = p.dtype(&A::a);
  const i32 after = i32(device.arch.number >= 90);
  const bool bias = p.tensor(&A::bias).present;
  const ColumnSumsConfig columns{dtype, bias ? p.dtype(&A::bias) : dtype, 0, rows::vector_of(p.vector(&A::b), k), 256};
  // Wider sums are read by accesses of 16 bytes, where these are aligned
  i32 widest = p.vector(&A::a);
  if (p.tensor(&A::column_sums).alignment < min_of(16, widest * 4)) widest = max_of(1, p.tensor(&A::column_sums).alignment / 4);
  const rows::DotShape shape = rows::dot_shape(dtype, widest, k);
  LinearRowsumConfig dots{dtype, p.dtype(&A::out), bias, shape.dots, shape.threads};
  Plan plan;
  Parts choice;
  choice.blocks = column_sums_blocks(columns, n, k), choice.chunks = shape.chunks;
  if (choice.blocks) choice.columns = plan.scratch("parts of column_sums", row_parts(n) * parts::part_elements(k) * 4);
  if (bias) choice.bias = plan.scratch("sum of bias", 4);
  if (m && shape.chunks > 1)
    choice.rows = plan.scratch("parts of out", shape.chunks * parts::part_elements(m) * 4), dots.out_dtype = DType::f32;
  if (choice.blocks + bias)
    plan.launch<column_params>(column_sums_kernel, columns, {.x = choice.blocks + bias, .smem = column_sums_smem(columns), .pdl = p.pdl},
                               choice);
  if (k) {
    const parts::SumPartsConfig sum = parts::sum_parts_config(DType::f32, k);
    plan.launch<column_sum_params>(parts::sum_parts_kernel, sum, parts::sum_parts_grid(sum, k, 1, plan.count > 0, p, device), choice);
  }
  if (m)
    plan.launch<dots_params>(
        dots_kernel, dots,
        {.x = rows::dot_blocks(shape, m, device), .smem = rows::row_dots_bytes(dots.dots, dots.threads), .pdl = plan.count ? after : p.pdl},
        choice);
  if (!choice.rows) return plan;
  const parts::SumPartsConfig sum = parts::sum_token_parts_config(p.dtype(&A::out));
  plan.launch<row_sum_params>(parts::sum_parts_kernel, sum, parts::sum_parts_grid(sum, m, 1, true, p, device), choice);
  return plan;
}

/// One rounding of the result. Of the sums of absolute terms: a column's sum has its roundings, which the products with a row carry on; a
/// row's thread adds at most 16 products, a chunk's threads 5 and 32 sums, a lane of parts one 32nd of the chunks, then 32 lanes.
static Budget budget(const Problem& p) {
  const double chunks = double(p[Axis::k]) * size_of(p.tensors[0].dtype) / 8192 / 32;
  return {.of_value = 0,
          .of_magnitude = (max_of(column_sum_roundings(p[Axis::n]), vector_sum_roundings(p[Axis::n])) + 88 + chunks) * 0x1p-24};
}

static void derive(Case& which) {
  if (which["out_f32"] != 0) which["out.dtype"] = int(DType::f32);
  if (which["wide_bias"] != 0) which["bias.dtype"] = int(DType::f32);
}

/// Each operand once, and two operations for an element of a, one for one of b.
static Cost cost(const Problem& p, const A&) {
  const double m = double(p[Axis::m]), n = double(p[Axis::n]), k = double(p[Axis::k]), size = size_of(p.dtype(&A::a));
  const double bias = p.tensor(&A::bias).present ? n * size_of(p.dtype(&A::bias)) : 0;
  return {(m + n) * k * size + bias + k * 4 + m * size_of(p.dtype(&A::out)), 2 * m * k + n * k};
}

QN_OP(linear_rowsum, A, "gemm.linear_rowsum")
    .doc("out[i] = sum_j (a b^T + bias)[i, j] = a[i] . column_sums + sum(bias), column_sums[x] = sum_j b[j, x]")
    .in("a", &A::a, "m k", {DType::f32, DType::f16, DType::bf16})
    .in("b", &A::b, "n k", like("a"))
    .meaning("the weight of a linear layer")
    .in("bias", &A::bias, "n", like("a", {DType::f32}))
    .optional()
    .strided()
    .meaning("absent: 0")
    .out("out", &A::out, "m", like("a", {DType::f32}))
    .out("column_sums", &A::column_sums, "k", {DType::f32})
    .meaning("what linear_rowsum_backward reads")
    .rows(Axis::m)
    .backward("gemm.linear_rowsum_backward", {{"dy", "out"}, {"da", "a"}, {"db", "b"}, {"dbias", "bias"}})
    .plan(plan)
    .reference<linear_rowsum_ref<double>, linear_rowsum_ref<OrderFree>>()
    .cost<cost>()
    .budget(budget)
    .cases({{"m", {3, 0, 1, 64, 257}},
            {"n", {300, 0, 1, 7, 64, 1025}},
            {"k", {1024, 0, 1, 7, 65, 96, 160, 320, 768, 1023, 20000}},
            {"a.dtype", {DType::bf16, DType::f16, DType::f32}},
            {"bias.present", {true, false}},
            {"wide_bias", {false, true}, "the bias is f32"},
            {"out_f32", {false, true}, "out is f32"},
            {"a.pad", {0, 8, 3}},
            {"b.pad", {0, 8, 1}}},
           derive)
    .bench({{{"m", 1024}, {"n", 2048}, {"k", 512}},
            {{"m", 1024}, {"n", 2048}, {"k", 8192}},
            {{"m", 512}, {"n", 4096}, {"k", 8192}},
            {{"m", 8192}, {"n", 8192}, {"k", 8192}}});

}  // namespace quern::gemm
