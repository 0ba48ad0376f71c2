// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/linear_rowsum_backward.h"

#include "quern/base/host_dtype.h"
#include "quern/bricks/rows/plan.h"
#include "quern/ops/gemm/linear_rowsum_backward/ref.h"
#include "quern/ops/gemm/linear_rowsum_backward/spec.h"
#include "quern/ops/gemm/rowsum/rowsum.h"

namespace quern::gemm {

using A = LinearRowsumBackwardArgs;

static const jit::Kernel<LinearRowsumOuterConfig, LinearRowsumOuterParams> outer_kernel{"quern/ops/gemm/linear_rowsum_backward/kernel.cuh",
                                                                                        "linear_rowsum_outer"};

/// For all launches: sums over parts of a's rows, these added up, and the sum of dy; where column_sums are not given, the same of b's rows.
struct Parts {
  Region columns, row, all, b_columns, b_row;
  i64 blocks = 0, b_blocks = 0;
};

static ColumnSumsParams b_column_params(const Call<A, Parts>& c) {
  const i64 n = c.problem[Axis::n], k = c.problem[Axis::k];
  return {c.args.b.data,    nullptr, c.region(c.choice.b_columns), nullptr, c.args.b.strides[0], 0, parts::part_elements(k), n, k, 0,
          c.choice.b_blocks};
}
static parts::SumPartsParams b_column_sum_params(const Call<A, Parts>& c) {
  const i64 k = c.problem[Axis::k];
  return {c.region(c.choice.b_columns), {c.region(c.choice.b_row), nullptr}, parts::part_elements(k), 0, k, row_parts(c.problem[Axis::n])};
}

static ColumnSumsParams column_params(const Call<A, Parts>& c) {
  const A& a = c.args;
  const i64 m = c.problem[Axis::m], k = c.problem[Axis::k];
  return {a.a.data,
          a.dy.data,
          c.region(c.choice.columns),
          reinterpret_cast<float*>(c.region(c.choice.all)),
          a.a.strides[0],
          a.dy.strides[0],
          parts::part_elements(k),
          m,
          k,
          m,
          c.choice.blocks};
}

static parts::SumPartsParams column_sum_params(const Call<A, Parts>& c) {
  const i64 k = c.problem[Axis::k];
  return {c.region(c.choice.columns), {c.region(c.choice.row), nullptr}, parts::part_elements(k), 0, k, row_parts(c.problem[Axis::m])};
}

static LinearRowsumOuterParams da_params(const Call<A, Parts>& c) {
  const A& a = c.args;
  const void* sums = a.column_sums.present() ? a.column_sums.data : c.region(c.choice.b_row);
  return {a.dy.data, static_cast<const float*>(sums), a.da.data, a.dy.strides[0], a.da.strides[0], c.problem[Axis::m], c.problem[Axis::k]};
}
static LinearRowsumOuterParams db_params(const Call<A, Parts>& c) {
  return {nullptr,
          reinterpret_cast<const float*>(c.region(c.choice.row)),
          c.args.db.data,
          0,
          c.args.db.strides[0],
          c.problem[Axis::n],
          c.problem[Axis::k]};
}
static LinearRowsumOuterParams dbias_params(const Call<A, Parts>& c) {
  return {nullptr, reinterpret_cast<const float*>(c.region(c.choice.all)), c.args.dbias.data, 0, 0, 1, c.problem[Axis::n]};
}

static LinearRowsumOuterConfig outer_config(const Problem& p, Outer outer, TensorView A::* out, i64 columns) {
  i32 widest = p.vector(out);
  // values of f32 are read by accesses of 16 bytes, where these are aligned
  const i32 alignment = outer == Outer::scaled ? p.tensor(&A::column_sums).alignment : 16;
  if (outer != Outer::filled && alignment < min_of(16, widest * 4)) widest = max_of(1, alignment / 4);
  return {p.dtype(out), p.dtype(&A::dy), outer, {rows::vector_of(widest, columns), 2}, 128};
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  const i64 m = p[Axis::m], n = p[Axis::n], k = p[Axis::k];
  const bool da = p.tensor(&A::da).present && m * k > 0, db = p.tensor(&A::db).present && n * k > 0,
             dbias = p.tensor(&A::dbias).present && n > 0;
  const auto follows = [&](const Plan& so_far) { return so_far.count ? i32(device.arch.number >= 90) : p.pdl; };
  Plan plan;
  Parts choice;
  if (da && !p.tensor(&A::column_sums).present) {
    const ColumnSumsConfig columns{p.dtype(&A::b), p.dtype(&A::b), 0, rows::vector_of(p.vector(&A::b), k), 256};
    choice.b_blocks = column_sums_blocks(columns, n, k), choice.b_row = plan.scratch("column sums", parts::part_elements(k) * 4);
    if (choice.b_blocks) {
      choice.b_columns = plan.scratch("parts of column sums", row_parts(n) * parts::part_elements(k) * 4);
      plan.launch<b_column_params>(column_sums_kernel, columns, {.x = choice.b_blocks, .smem = column_sums_smem(columns), .pdl = p.pdl},
                                   choice);
    }
    const parts::SumPartsConfig sum = parts::sum_parts_config(DType::f32, k);
    plan.launch<b_column_sum_params>(parts::sum_parts_kernel, sum, parts::sum_parts_grid(sum, k, 1, plan.count > 0, p, device), choice);
  }
  if (da) {
    const LinearRowsumOuterConfig c = outer_config(p, Outer::scaled, &A::da, k);
    plan.launch<da_params>(outer_kernel, c, {.x = rows::chunk_blocks(c.chunks, c.threads, {m, k}, device), .pdl = follows(plan)}, choice);
  }
  const ColumnSumsConfig columns{p.dtype(&A::a), p.dtype(&A::dy), 1, rows::vector_of(p.vector(&A::a), k), 256};
  if (db) {
    choice.blocks = column_sums_blocks(columns, m, k), choice.row = plan.scratch("a row of db", parts::part_elements(k) * 4);
    if (choice.blocks) choice.columns = plan.scratch("parts of db", row_parts(m) * parts::part_elements(k) * 4);
  }
  if (dbias) choice.all = plan.scratch("sum of dy", 4);
  if (choice.blocks + dbias)
    plan.launch<column_params>(column_sums_kernel, columns,
                               {.x = choice.blocks + dbias, .smem = column_sums_smem(columns), .pdl = follows(plan)}, choice);
  if (db) {
    const parts::SumPartsConfig sum = parts::sum_parts_config(DType::f32, k);
    plan.launch<column_sum_params>(parts::sum_parts_kernel, sum, parts::sum_parts_grid(sum, k, 1, plan.count > 0, p, device), choice);
    const LinearRowsumOuterConfig c = outer_config(p, Outer::repeated, &A::db, k);
    plan.launch<db_params>(outer_kernel, c, {.x = rows::chunk_blocks(c.chunks, c.threads, {n, k}, device), .pdl = follows(plan)}, choice);
  }
  if (dbias) {
    const LinearRowsumOuterConfig c = outer_config(p, Outer::filled, &A::dbias, n);
    plan.launch<dbias_params>(outer_kernel, c, {.x = rows::chunk_blocks(c.chunks, c.threads, {1, n}, device), .pdl = follows(plan)},
                              choice);
  }
  return plan;
}

static Rejection wants_something(const Problem& p) {
  if (p.tensor(&A::da).present || p.tensor(&A::db).present || p.tensor(&A::dbias).present) return {};
  return {"da", "absent", "a tensor here, in db or in dbias"};
}

/// One rounding of the result, of da one more in f32. Of the sums of absolute terms: the roundings of a sum over rows of a or b, or of
/// dy's.
static Budget budget(const Problem& p) {
  const DType dtype = p.tensor(&A::a).dtype;
  return {.of_value = unit_roundoff(dtype) + 0x1p-24,
          .of_magnitude = (max_of(column_sum_roundings(max_of(p[Axis::m], p[Axis::n])), vector_sum_roundings(p[Axis::m])) + 1) * 0x1p-24};
}

static void derive(Case& which) {
  const i64 wide = i64(which["wide"]);
  if (wide & 1) which["dy.dtype"] = int(DType::f32);
  else which["dy.dtype"] = which["a.dtype"];
  if (wide & 2) which["db.dtype"] = which["dbias.dtype"] = int(DType::f32);
  if (which["da.present"] == 0 && which["db.present"] == 0) which["dbias.present"] = 1;
}

/// Each operand that is read once, and each result.
static Cost cost(const Problem& p, const A&) {
  const double m = double(p[Axis::m]), n = double(p[Axis::n]), k = double(p[Axis::k]), size = size_of(p.dtype(&A::a));
  double bytes = m * size_of(p.dtype(&A::dy)), flops = 0;
  if (p.tensor(&A::da).present) bytes += m * k * size, flops += m * k;
  if (p.tensor(&A::da).present) bytes += p.tensor(&A::column_sums).present ? k * 4 : n * k * size;
  if (p.tensor(&A::db).present) bytes += m * k * size + n * k * size_of(p.dtype(&A::db)), flops += 2 * m * k;
  if (p.tensor(&A::dbias).present) bytes += n * size_of(p.dtype(&A::dbias)), flops += m;
  return {bytes, flops};
}

QN_OP(linear_rowsum_backward, A, "gemm.linear_rowsum_backward")
    .doc("da = dy column_sums; db[j, x] = sum_i dy[i] a[i, x] and dbias[j] = sum_i dy[i], for every j")
    .in("a", &A::a, "m k", {DType::f32, DType::f16, DType::bf16})
    .in("dy", &A::dy, "m", like("a", {DType::f32}))
    .strided()
    .meaning("the gradient of linear_rowsum's out")
    .in("b", &A::b, "n k", like("a"))
    .meaning("read where column_sums are absent")
    .in("column_sums", &A::column_sums, "k", {DType::f32})
    .optional()
    .meaning("as linear_rowsum wrote them; absent: computed of b")
    .out("da", &A::da, "m k", like("a"))
    .optional()
    .out("db", &A::db, "n k", like("a", {DType::f32}))
    .optional()
    .meaning("all rows are alike")
    .out("dbias", &A::dbias, "n", like("a", {DType::f32}))
    .optional()
    .meaning("all elements are alike")
    .require(wants_something)
    .rows(Axis::m)
    .plan(plan)
    .reference<linear_rowsum_backward_ref<double>, linear_rowsum_backward_ref<OrderFree>>()
    .cost<cost>()
    .budget(budget)
    .cases({{"m", {65, 0, 1, 3, 300}},
            {"n", {257, 0, 1, 7, 64}},
            {"k", {1024, 0, 1, 7, 65, 96, 160, 320, 768, 1023, 20000}},
            {"a.dtype", {DType::bf16, DType::f16, DType::f32}},
            {"column_sums.present", {true, false}},
            {"da.present", {true, false}},
            {"db.present", {true, false}},
            {"dbias.present", {true, false}},
            {"wide", {0, 1, 2, 3}, "dy is f32 (1), db and dbias are (2), or all (3)"},
            {"a.pad", {0, 8, 3}},
            {"b.pad", {0, 8, 1}},
            {"da.pad", {0, 16, 1}},
            {"db.pad", {0, 8, 1}}},
           derive)
    .bench({{{"m", 1024}, {"n", 2048}, {"k", 512}},
            {{"m", 1024}, {"n", 2048}, {"k", 8192}},
            {{"m", 512}, {"n", 4096}, {"k", 8192}},
            {{"m", 8192}, {"n", 8192}, {"k", 8192}}});

}  // namespace quern::gemm
