// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What ops of the kernel map_row_chunk say to the host: plan, parameters, cases. A is an op's Args.
#pragma once
#include "quern/base/host_dtype.h"
#include "quern/bricks/rows/plan.h"
#include "quern/op/schema.h"
#include "quern/ops/elementwise/map_row/spec.h"

namespace quern::elementwise {

extern const jit::Kernel<MapRowConfig, MapRowParams> map_row_kernel;

template <class A> constexpr bool kHasY = requires(const A& a) { a.y; };
template <class A> constexpr bool kHasDiagonal = requires(const A& a) { a.diagonal; };
/// Columns of short rows of diag_scale, which share blocks; a longer row fills one, which then needs no division for each access.
constexpr i64 kShortRow = 2048;

template <class A> rows::Extents extents_of(const Problem& p) {
  bool contiguous = p.tensor(&A::x).contiguous && p.tensor(&A::out).contiguous;
  if constexpr (kHasY<A>) contiguous = contiguous && p.tensor(&A::y).contiguous;
  if constexpr (kHasDiagonal<A>) contiguous = contiguous && p[Axis::hidden] < kShortRow;
  return rows::flat_extents(p[Axis::tokens], p[Axis::hidden], contiguous);
}

template <class A> MapRowParams map_params(const Call<A>& c) {
  const A& a = c.args;
  const rows::Extents e = extents_of<A>(c.problem);
  MapRowParams p{};
  p.x = a.x.data, p.out = a.out.data;
  p.x_stride = a.x.strides[0], p.out_stride = a.out.strides[0];
  p.rows = e.rows, p.columns = e.columns;
  if constexpr (kHasY<A>) p.y = a.y.data, p.y_stride = a.y.strides[0];
  if constexpr (kHasDiagonal<A>) {
    p.y = a.diagonal.data, p.y_stride = a.diagonal.strides[0];
    if (e.rows != c.problem[Axis::tokens]) p.row_columns = c.problem[Axis::hidden];
  }
  if constexpr (requires { a.factor; }) p.value = a.factor;
  if constexpr (requires { a.cap; }) p.value = a.cap;
  return p;
}

template <class A, Map kMap> Plan plan_map(const Problem& p, const DeviceInfo& device) {
  const rows::Extents e = extents_of<A>(p);
  i32 widest = min_of(p.vector(&A::x), p.vector(&A::out));
  if constexpr (kHasY<A>) widest = min_of(widest, p.vector(&A::y));
  const MapRowConfig config{p.dtype(&A::x), kMap, {rows::vector_of(widest, kHasDiagonal<A> ? p[Axis::hidden] : e.columns), 2}, 128};
  Plan plan;
  plan.launch<map_params<A>>(map_row_kernel, config, {.x = rows::chunk_blocks(config.chunks, config.threads, e, device), .pdl = p.pdl});
  return plan;
}

/// A product is rounded to f32 and, of narrower dtypes, once more.
inline Budget product_budget(const Problem& p) {
  const DType dtype = p.tensors[0].dtype;
  return {.of_value = unit_roundoff(dtype) + (dtype == DType::f32 ? 0 : 0x1p-24)};
}

/// What the cases of these ops have in common.
inline std::vector<CaseAxis> map_cases(std::vector<CaseAxis> others) {
  std::vector<CaseAxis> all = {{"tokens", {3, 0, 1, 64}},
                               {"hidden", {4096, 1, 7, 96, 127, 1025}},
                               {"x.dtype", {DType::bf16, DType::f16, DType::f32}},
                               {"x.pad", {0, 8, 3}},
                               {"out.pad", {0, 16, 1}}};
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

}  // namespace quern::elementwise
