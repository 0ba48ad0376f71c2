// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What ops of the kernel select_row say to the host, for ops whose Args have their members by these names.
#pragma once
#include "quern/base/host_dtype.h"
#include "quern/bricks/select/plan.h"
#include "quern/op/ref.h"
#include "quern/op/schema.h"
#include "quern/ops/topk/select_row/spec.h"

namespace quern::topk {

extern const jit::Kernel<SelectConfig, SelectParams> row_kernel;

inline const i32* integers(const TensorView& v) { return static_cast<const i32*>(v.data); }

/// What the ops read alike. What they write, and what follows the indices, is left to them.
template <class A> SelectParams row_params(const A& a) {
  SelectParams p{};
  p.x = a.x.data, p.stride = a.x.strides[0];
  p.lengths = integers(a.lengths), p.row_starts = integers(a.row_starts);
  p.rows = a.x.shape[0], p.length = a.x.shape[1], p.k = a.k;
  return p;
}

template <auto params, class A> Plan plan_rows(const Problem& p, const DeviceInfo& device, Ending ending) {
  static const Axis rows = axis_of("rows"), length = axis_of("length");
  const i32 vector = p.tensor(&A::row_starts).present ? 1 : p.vector(&A::x);
  // A list for k up to 2048, which is what sparse attention takes, with room for what is listed besides
  const RowLayout layout = row_layout(p.dtype(&A::x), vector, p[rows], p[length], device, {.listed = 2 * kSelectBins});
  const SelectConfig config{layout, ending, layout.threads, resident_blocks(layout)};
  Plan plan;
  plan.launch<params>(row_kernel, config, row_grid(layout, p[rows], p[length], device, p.pdl));
  return plan;
}

template <class A> Rejection sizes_fit(const Problem& p) {
  static const Axis length = axis_of("length");
  if (p[length] > kLongestRow) return {"length", p[length], "0 to {}", kLongestRow};
  if (p.attr(&A::k) < 0 || p.attr(&A::k) > kLongestRow) return {"k", p.attr(&A::k), "0 to {}", kLongestRow};
  return {};
}

/// What a row has of x: its elements.
template <class A> i64 length_of(const A& a, i64 row) {
  if (a.lengths.present()) return Ref(a.lengths).index(row);
  return a.x.shape[1] - (a.row_starts.present() ? Ref(a.row_starts).index(row) : 0);
}
/// A row's part lies in x.
template <class A> Breach rows_contract(const A& a) {
  if (!a.lengths.present() || !a.row_starts.present()) return {};
  for (i64 row = 0; row < a.x.shape[0]; ++row) {
    const i64 start = Ref(a.row_starts).index(row), length = Ref(a.lengths).index(row), most = a.x.shape[1] - start;
    if (length > most) return {"lengths", {row}, length, range_text(0, most) + ", as the row begins at " + std::to_string(start)};
  }
  return {};
}

/// Rows of few values in turn with normal ones, with NaN, infinities and zeros of both signs among them; their starts and lengths.
QN_API void generate_rows(const TensorView& x, const TensorView& lengths, const TensorView& row_starts, Random& random);

/// One read of the rows, and k times `written` bytes of each.
template <class A> Cost rows_cost(const Problem& p, const A& a, i64 written) {
  return {.bytes = double(a.x.shape[0]) * (double(a.x.shape[1]) * size_of(p.dtype(&A::x)) + double(a.k * written)), .flops = 0};
}

/// The rows in a schema, for Schema::with.
template <class A> Schema<A>& state_rows(Schema<A>& schema) {
  return schema.in("x", &A::x, "rows length", {DType::f32, DType::f16, DType::bf16})
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
      .meaning("column at which each row begins, from which indices count; absent: 0");
}
template <class A> Schema<A>& state_k(Schema<A>& schema) {
  return schema.attr("k", &A::k).meaning("elements of a row of the result, from 0 to 2^20");
}

/// What the cases of these ops have in common.
QN_API std::vector<CaseAxis> rows_cases(std::vector<CaseAxis> others);

constexpr const char* kWhyExact = "indices are integers, found by the order of values: other number types have none";

}  // namespace quern::topk
