// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// scales[i, g] = max(max_j |x[i, j]|, amax_floor) / largest over the columns j of group g, q[i, j] = x[i, j] * (1 / scales[i, g])
// Eight lanes hold a group of 128 columns in registers, four one of 64, two one of 32: store_fp8_groups. Of a group of 128 a warp's scales
// are 8 neighbours of a column: one sector of an MN-major layout.
#pragma once
#include "quern/ops/quant/access/access.cuh"
#include "quern/ops/quant/per_token_group/spec.h"

namespace quern::quant {

/// What a lane holds of one group.
template <PerTokenGroupConfig C> struct GroupPart {
  static constexpr int kAccesses = kFp8Accesses<C.vector>;
  static constexpr int kStep = fp8_group_lanes(C.group) * C.vector;  ///< columns from one access to the next
  Packed<dtype_t<C.x_dtype>, C.vector> access[kAccesses];
};

/// Loads the columns from `column` on, where there are any.
template <PerTokenGroupConfig C>
QN_DEVICE void load_group(const PerTokenGroupParams& p, i64 row, i64 column, GroupPart<C>& part) {
  using T = dtype_t<C.x_dtype>;
  const T* from = static_cast<const T*>(p.x) + row * p.x_stride + column;
  QN_UNROLL
  for (int a = 0; a < part.kAccesses; ++a)
    if (row < p.m && column + a * part.kStep < p.k) part.access[a] = load_packed<T, C.vector>(from + a * part.kStep);
}

/// The group's scale, in all of its lanes.
template <PerTokenGroupConfig C>
QN_DEVICE f32 group_scale(const PerTokenGroupParams& p, i64 row, i64 column, const GroupPart<C>& part) {
  f32 amax = 0.f;
  QN_UNROLL
  for (int a = 0; a < part.kAccesses; ++a) {
    if (row >= p.m || column + a * part.kStep >= p.k) continue;
    amax = amax_with(amax, part.access[a]);
  }
  return fp8_scale<C.q_dtype>(warp_max_nan<fp8_group_lanes(C.group)>(amax), C.e8m0 != 0 || p.power_of_two != 0, f32(p.amax_floor));
}

template <PerTokenGroupConfig C>
QN_DEVICE void store_group(const PerTokenGroupParams& p, i64 row, i64 column, const GroupPart<C>& part, f32 scale) {
  using Q = dtype_t<C.q_dtype>;
  const f32 inverse = fp8_inverse(scale);
  Q* to = static_cast<Q*>(p.q) + row * p.q_stride + column;
  QN_UNROLL
  for (int a = 0; a < part.kAccesses; ++a) {
    if (row >= p.m || column + a * part.kStep >= p.k) continue;
    store_quantised(to + a * part.kStep, part.access[a], inverse);
  }
}

/// As a scale is stored.
template <bool is_e8m0> struct GroupScale {
  using type = f32;
};
template <> struct GroupScale<true> {
  using type = e8m0;
};

template <PerTokenGroupConfig C> QN_DEVICE void per_token_group_tile(const PerTokenGroupParams& p) {
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  store_fp8_groups<GroupPart<C>, C.vector, C.steps, C.threads, C.group, typename GroupScale<C.e8m0 != 0>::type>(
      p.m, p.k, p.scales, p.scale_strides, [&](i64 row, i64 column, GroupPart<C>& part) { load_group<C>(p, row, column, part); },
      [&](i64 row, i64 column, const GroupPart<C>& part) {
        const f32 scale = group_scale<C>(p, row, column, part);
        store_group<C>(p, row, column, part, scale);
        return scale;
      });
}

}  // namespace quern::quant
