// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/elementwise/gather_rows.h"

#include "quern/base/host_dtype.h"
#include "quern/bricks/rows/plan.h"
#include "quern/op/schema.h"
#include "quern/ops/elementwise/gather_rows/ref.h"
#include "quern/ops/elementwise/gather_rows/spec.h"

namespace quern::elementwise {

using A = GatherRowsArgs;

static const jit::Kernel<GatherRowsConfig, GatherRowsParams> chunk_kernel{"quern/ops/elementwise/gather_rows/kernel.cuh",
                                                                          "gather_rows_chunk"};

static bool copies(const Problem& p) { return p.attr(&A::scale) == 1.f; }
/// Bytes of what the kernel counts columns in.
static i64 element_bytes(const Problem& p) { return copies(p) ? size_of(p.dtype(&A::table)) : 1; }

static GatherRowsParams params(const Call<A>& c) {
  const A& a = c.args;
  const i64 bytes = element_bytes(c.problem);
  return {.table = a.table.data,
          .ids = a.ids.data,
          .out = a.out.data,
          .table_stride = a.table.strides[0] * bytes,
          .out_stride = a.out.strides[0] * bytes,
          .rows = a.table.shape[0],
          .tokens = a.out.shape[0],
          .columns = a.out.shape[1] * bytes,
          .scale = a.scale,
          .unused = 0};
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  const DType dtype = copies(p) ? DType::u8 : p.dtype(&A::table);
  const i64 columns = p[Axis::hidden] * element_bytes(p);
  const i32 widest =
      copies(p) ? min_of(p.tensor(&A::table).alignment, p.tensor(&A::out).alignment) : min_of(p.vector(&A::table), p.vector(&A::out));
  const GatherRowsConfig config{dtype, p.dtype(&A::ids), {rows::vector_of(widest, columns), 2}, 128};
  Plan plan;
  plan.launch<params>(chunk_kernel, config,
                      {.x = rows::chunk_blocks(config.chunks, config.threads, {p[Axis::tokens], columns}, device), .pdl = p.pdl});
  return plan;
}

static bool is_fp8(DType dtype) { return dtype == DType::e4m3 || dtype == DType::e5m2; }
static Rejection scale_fits(const Problem& p) {
  const float scale = p.attr(&A::scale);
  if (!(scale - scale == 0)) return {"scale", scale, "a finite number"};
  if (copies(p) || !is_fp8(p.dtype(&A::table))) return {};
  return {"scale", p.attr(&A::scale), "1: rows in FP8 are only copied"};
}

/// Copies are exact. Else one rounding of the product in f32 and, of narrower dtypes, one of the result.
static Budget budget(const Problem& p) {
  if (copies(p)) return {.exact = true};
  const DType dtype = p.tensors[0].dtype;
  return {.of_value = unit_roundoff(dtype) + (dtype == DType::f32 ? 0 : 0x1p-24)};
}

/// Some tokens have no row; where the case's word `beyond` is 1, some have an id beyond the table.
static void generate(A& args, const Case& which, Random& random) {
  const auto word = [&](const char* name) {
    const auto at = which.find(name);
    return at != which.end() && at->second != 0;
  };
  const i64 rows = args.table.shape[0];
  for (i64 t = 0; t < args.ids.shape[0]; ++t) {
    const i64 at[] = {t};
    i64 id = rows > 0 ? i64(random.next() % u64(rows)) : -1;
    if (t % 5 == 3) id = -1 - t;
    if (word("beyond") && t % 5 == 1) id = rows + t;
    store_integer(args.ids.at(at), args.ids.dtype, id);
  }
}

/// Each token's row once, and its id; the table is as long as it likes.
static Cost cost(const Problem& p, const A& args) {
  const Ref ids(args.ids);
  const double row = double(p[Axis::hidden]) * size_of(p.dtype(&A::table));
  double bytes = double(p[Axis::tokens]) * (row + size_of(p.dtype(&A::ids)));
  for (i64 t = 0; t < p[Axis::tokens]; ++t) bytes += ids.index(t) < 0 ? 0 : row;
  return {bytes, 0};
}

static void derive(Case& which) {
  if (is_fp8(DType(i64(which["table.dtype"])))) which["scale"] = 1.0;
}

QN_OP(gather_rows, A, "elementwise.gather_rows")
    .doc("out[t] = table[ids[t]] * scale; zeros where the id is negative")
    .in("table", &A::table, "rows hidden", {DType::bf16, DType::f16, DType::f32, DType::e4m3, DType::e5m2})
    .in("ids", &A::ids, "tokens", {DType::i32, DType::i64})
    .values(generated())
    .contents(each_below("rows").or_negative())
    .meaning("a row of the table; negative: zeros")
    .out("out", &A::out, "tokens hidden", like("table"))
    .attr("scale", &A::scale)
    .meaning("what rows are multiplied by in f32; 1: they are copied bit by bit")
    .require(scale_fits)
    .rows(Axis::tokens)
    .plan(plan)
    .reference<gather_rows_ref<double>, gather_rows_ref<OrderFree>>()
    .generate<generate>()
    .broken_contents("beyond", 1)
    .cost<cost>()
    .budget(budget)
    .cases({{"tokens", {7, 0, 1, 64}},
            {"rows", {50, 1, 1000}},
            {"hidden", {2048, 1, 7, 96, 127, 1025}},
            {"table.dtype", {DType::bf16, DType::f16, DType::f32, DType::e4m3, DType::e5m2}},
            {"ids.dtype", {DType::i32, DType::i64}},
            {"scale", {1.0, 45.25}},
            {"beyond", {0, 1}, "some ids are beyond the table"},
            {"table.pad", {0, 8, 3}},
            {"out.pad", {0, 16, 1}}},
           derive)
    .bench({{{"tokens", 1}, {"rows", 128256}, {"hidden", 4096}}, {{"tokens", 4096}, {"rows", 128256}, {"hidden", 4096}}});

}  // namespace quern::elementwise
