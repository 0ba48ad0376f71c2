// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// scales[i, g] = max(max_j |x[i, j]|, 1e-4) / largest over the 128 columns j of group g, q[i, j] = x[i, j] * (1 / scales[i, g])
// Eight lanes hold a group in registers; the four octets of a warp are at consecutive rows of one group, and again 4 rows further.
// So a warp's scales are 8 neighbours of a column and leave in one store, which is one sector of an MN-major layout. A block's
// warps are at neighbouring groups.
#pragma once
#include "quern/kit/fp8_scale.cuh"
#include "quern/kit/kit.cuh"
#include "quern/ops/quant/per_token_group_spec.h"

namespace quern::quant {

/// What a lane holds of one group.
template <PerTokenGroupConfig C> struct GroupPart {
  static constexpr int kAccesses = kLaneColumns / C.vector;
  static constexpr int kStep = kGroupLanes * C.vector;  ///< columns from one access to the next
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
    f32 v[C.vector];
    unpack(part.access[a], v);
    QN_UNROLL
    for (int j = 0; j < C.vector; ++j) amax = ptx::fmax_nan(amax, ptx::fabs(v[j]));
  }
  return fp8_scale<C.q_dtype>(warp_max_nan<kGroupLanes>(amax), p.power_of_two != 0);
}

template <PerTokenGroupConfig C>
QN_DEVICE void store_group(const PerTokenGroupParams& p, i64 row, i64 column, const GroupPart<C>& part, f32 scale) {
  using Q = dtype_t<C.q_dtype>;
  const f32 inverse = fp8_inverse(scale);
  Q* to = static_cast<Q*>(p.q) + row * p.q_stride + column;
  QN_UNROLL
  for (int a = 0; a < part.kAccesses; ++a) {
    if (row >= p.m || column + a * part.kStep >= p.k) continue;
    f32 v[C.vector];
    unpack(part.access[a], v);
    QN_UNROLL
    for (int j = 0; j < C.vector; ++j) v[j] = v[j] * inverse;
    store_f32<Q, C.vector>(to + a * part.kStep, v);
  }
}

template <PerTokenGroupConfig C> QN_DEVICE void per_token_group_tile(const PerTokenGroupParams& p) {
  constexpr int kOctets = 32 / kGroupLanes, kRows = kOctets * C.steps, kGroups = C.threads / 32;
  const int lane = int(threadIdx.x) % kGroupLanes, octet = int(threadIdx.x) / kGroupLanes % kOctets;
  const i64 groups = ceil_div<i64>(p.k, kGroup), across = ceil_div<i64>(groups, kGroups), band = blockIdx.x / across;
  const i64 group = (blockIdx.x - band * across) * kGroups + threadIdx.x / 32;
  const i64 row = band * kRows + octet, column = group * kGroup + lane * C.vector;
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();

  // All loads first: they are in flight together
  GroupPart<C> parts[C.steps];
  QN_UNROLL
  for (int s = 0; s < C.steps; ++s) load_group<C>(p, row + s * kOctets, column, parts[s]);
  f32 own = 0.f;  // in lane s of an octet: the scale of its row of step s
  QN_UNROLL
  for (int s = 0; s < C.steps; ++s) {
    const f32 scale = group_scale<C>(p, row + s * kOctets, column, parts[s]);
    store_group<C>(p, row + s * kOctets, column, parts[s], scale);
    if (lane == s) own = scale;
  }
  const i64 own_row = row + lane * kOctets;
  if (lane < C.steps && own_row < p.m && group < groups)
    static_cast<f32*>(p.scales)[own_row * p.scale_strides[0] + group * p.scale_strides[1]] = own;
}

}  // namespace quern::quant
