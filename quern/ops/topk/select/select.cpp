// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/topk/select.h"

#include <cmath>
#include <limits>

#include "quern/op/schema.h"
#include "quern/ops/topk/select/ref.h"
#include "quern/ops/topk/select_row/spec.h"

namespace quern::topk {

using A = SelectArgs;

static const jit::Kernel<SelectConfig, SelectParams> row_kernel{"quern/ops/topk/select_row/kernel.cuh", "select_row"};

static SelectParams params(const Call<A>& c) {
  const A& a = c.args;
  return {a.x.data, static_cast<i32*>(a.indices.data), a.values.data, static_cast<const i32*>(a.lengths.data), static_cast<const i32*>(a.row_starts.data),
          a.x.strides[0], a.indices.strides[0], a.values.strides[0], a.x.shape[0], a.x.shape[1], a.k};
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  static const Axis rows = axis_of("rows"), length = axis_of("length");
  const i32 vector = p.tensor(&A::row_starts).present ? 1 : p.vector(&A::x);
  const RowLayout layout{p.dtype(&A::x), vector * size_of(p.dtype(&A::x)) == 16 ? vector : 1, row_threads(p[length])};
  const SelectConfig config{layout, p.attr(&A::sorted), layout.threads};
  Plan plan;
  plan.launch<params>(row_kernel, config, {.x = max_of<i64>(1, min_of<i64>(p[rows], i64(device.sms) * 8)), .smem = select_smem().bytes, .pdl = p.pdl});
  return plan;
}

static Rejection sizes_fit(const Problem& p) {
  static const Axis length = axis_of("length");
  if (p[length] > kLongestRow) return {"length", p[length], "0 to {}", kLongestRow};
  if (p.attr(&A::k) < 0 || p.attr(&A::k) > kLongestRow) return {"k", p.attr(&A::k), "0 to {}", kLongestRow};
  return {};
}

/// A row's part lies in x.
static Breach contract(const A& a, const Problem&) {
  if (!a.lengths.present() || !a.row_starts.present()) return {};
  for (i64 row = 0; row < a.x.shape[0]; ++row) {
    const i64 start = Ref(a.row_starts).index(row), length = Ref(a.lengths).index(row), most = a.x.shape[1] - start;
    if (length > most) return {"lengths", {row}, length, range_text(0, most) + ", as the row begins at " + std::to_string(start)};
  }
  return {};
}

/// Rows of few values in turn with normal ones, with NaN, infinities and zeros of both signs among them.
static void generate(A& a, const Case&, Random& random) {
  const double inf = std::numeric_limits<double>::infinity(), few[] = {0.0, -0.0, 1, -1, inf, -inf, std::numeric_limits<double>::quiet_NaN(), 2};
  for (i64 row = 0, kind = random.below(4); row < a.x.shape[0]; ++row, ++kind) {
    for (i64 i = 0; i < a.x.shape[1]; ++i) {
      const i64 at[] = {row, i};
      const double normal = random.uniform() + random.uniform() + random.uniform();
      store_element(a.x, at, kind % 4 == 0 ? 0.5 : kind % 4 == 1 ? few[random.below(8)] : kind % 4 == 2 && random.below(3) == 0 ? -inf : normal);
    }
    const i64 start = a.row_starts.present() ? random.below(a.x.shape[1] + 1) : 0, at[] = {row};
    if (a.row_starts.present()) store_integer(a.row_starts.at(at), DType::i32, start);
    if (a.lengths.present()) store_integer(a.lengths.at(at), DType::i32, random.below(5) == 0 ? 0 : random.below(a.x.shape[1] - start + 1));
  }
}

static Cost cost(const Problem& p, const A& a) {
  return {.bytes = double(a.x.shape[0]) * (double(a.x.shape[1]) * size_of(p.dtype(&A::x)) + double(a.k) * (4 + (a.values.present() ? size_of(p.dtype(&A::x)) : 0))), .flops = 0};
}

QN_OP(select, A, "topk.select")
    .doc("indices = those of the k largest of each row, of equal values the lowest; -1 where a row has fewer")
    .in("x", &A::x, "rows length", {DType::f32, DType::f16, DType::bf16})
    .values(generated())
    .meaning("-0 equals 0; NaN ranks below -inf")
    .in("lengths", &A::lengths, "rows", {DType::i32})
    .optional()
    .values(generated())
    .contents(each_within("0", "length"))
    .meaning("elements of each row, cut to what x has of it; absent: all behind its start")
    .in("row_starts", &A::row_starts, "rows", {DType::i32})
    .optional()
    .values(generated())
    .contents(each_within("0", "length"))
    .meaning("column at which each row begins, from which indices count; absent: 0")
    .attr("k", &A::k)
    .meaning("elements of a row of the result, from 0 to 2^20")
    .attr("sorted", &A::sorted)
    .meaning("by descending value, equal ones by ascending index; else by ascending index")
    .out("indices", &A::indices, "rows k", {DType::i32})
    .out("values", &A::values, "rows k", like("x"))
    .optional()
    .meaning("-inf where the index is -1")
    .rows(axis_of("rows"))
    .require(sizes_fit)
    .plan(plan)
    .reference<select_ref>()
    .generate<generate>()
    .contract<contract>()
    .cost<cost>()
    .exact("indices are integers, found by the order of values: other number types have none")
    .cases({{"rows", {23, 1, 0, 5}},
            {"length", {1000, 1, 2, 33, 513, 4099, 0}},
            {"k", {8, 1, 0, 33, 1000, 4200}},
            {"sorted", {true, false}},
            {"x.dtype", {DType::f32, DType::bf16, DType::f16}},
            {"lengths.present", {true, false}},
            {"row_starts.present", {false, true}},
            {"values.present", {true, false}},
            {"x.pad", {0, 8, 1}},
            {"indices.pad", {0, 1}}})
    .bench({{{"rows", 1}, {"length", 128256}, {"k", 2048}, {"lengths.present", 0}},
            {{"rows", 64}, {"length", 128256}, {"k", 2048}, {"lengths.present", 0}},
            {{"rows", 256}, {"length", 128256}, {"k", 2048}, {"lengths.present", 0}},
            {{"rows", 64}, {"length", 128256}, {"k", 50}, {"lengths.present", 0}}});

}  // namespace quern::topk
