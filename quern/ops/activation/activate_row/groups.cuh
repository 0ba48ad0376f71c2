// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// y = f(x), or f(gate) * up, in FP8: scales[t, g] = max(max_i |y[t, i]|, amax_floor) / largest over the 128 columns of group g,
// out = y * (1 / scale)
// Eight lanes hold a group in registers: store_fp8_groups.
#pragma once
#include "quern/kit/fp8_scale.cuh"
#include "quern/ops/activation/activate_row/function.cuh"

namespace quern::activation {

/// What a lane holds of one group.
template <ActivateRowGroupsConfig C> struct GroupPart {
  static constexpr int kAccesses = kFp8Accesses<C.vector>;
  static constexpr int kStep = kFp8GroupLanes * C.vector;  ///< columns from one access to the next
  Held<C.dtype, C.vector> access[kAccesses];
};

/// Loads the columns from `column` on, where there are any.
template <ActivateRowGroupsConfig C>
QN_DEVICE void load_group(const ActivateRowParams& p, i64 row, i64 column, GroupPart<C>& part) {
  QN_UNROLL
  for (int a = 0; a < part.kAccesses; ++a)
    if (row < p.tokens && column + a * part.kStep < p.columns) load_operands<C, C.vector>(p, row, column + a * part.kStep, part.access[a]);
}

/// y of the group, rounded and stored. Returns its scale, in all of its lanes.
template <ActivateRowGroupsConfig C>
QN_DEVICE f32 store_group(const ActivateRowGroupsParams& params, i64 row, i64 column, const GroupPart<C>& part) {
  using Q = dtype_t<C.out_dtype>;
  const ActivateRowParams& p = params.row;
  f32 y[GroupPart<C>::kAccesses][C.vector];
  f32 amax = 0.f;
  QN_UNROLL
  for (int a = 0; a < part.kAccesses; ++a) {
    if (row >= p.tokens || column + a * part.kStep >= p.columns) continue;
    results_of<C, C.vector>(p, part.access[a], y[a]);
    QN_UNROLL
    for (int j = 0; j < C.vector; ++j) amax = ptx::fmax_nan(amax, ptx::fabs(y[a][j]));
  }
  const f32 scale = fp8_scale<C.out_dtype>(warp_max_nan<kFp8GroupLanes>(amax), false, f32(params.amax_floor)), inverse = fp8_inverse(scale);
  Q* to = static_cast<Q*>(p.out) + row * p.out_stride + column;
  QN_UNROLL
  for (int a = 0; a < part.kAccesses; ++a) {
    if (row >= p.tokens || column + a * part.kStep >= p.columns) continue;
    QN_UNROLL
    for (int j = 0; j < C.vector; ++j) y[a][j] = y[a][j] * inverse;
    store_f32<Q, C.vector>(to + a * part.kStep, y[a]);
  }
  return scale;
}

template <ActivateRowGroupsConfig C> QN_DEVICE void activate_row_groups(const ActivateRowGroupsParams& p) {
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  store_fp8_groups<GroupPart<C>, C.vector, C.steps, C.threads>(
      p.row.tokens, p.row.columns, p.scales, p.scale_strides,
      [&](i64 row, i64 column, GroupPart<C>& part) { load_group<C>(p.row, row, column, part); },
      [&](i64 row, i64 column, const GroupPart<C>& part) { return store_group<C>(p, row, column, part); });
}

}  // namespace quern::activation
