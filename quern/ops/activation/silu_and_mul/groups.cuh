// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// y[t, i] = silu(x[t, i]) * x[t, intermediate + i] in FP8: scales[t, g] = max(max_i |y[t, i]|, 1e-4) / largest over the 128
// columns of group g, out = y * (1 / scale)
// Eight lanes hold a group in registers: store_fp8_groups.
#pragma once
#include "quern/kit/activation.cuh"
#include "quern/kit/fp8_scale.cuh"
#include "quern/kit/kit.cuh"
#include "quern/ops/activation/silu_and_mul/groups_spec.h"

namespace quern::activation {

/// What a lane holds of one group, as it lies in memory.
template <SiluAndMulGroupsConfig C> struct GatedPart {
  static constexpr int kAccesses = kFp8Accesses<C.vector>;
  static constexpr int kStep = kFp8GroupLanes * C.vector;  ///< columns from one access to the next
  Packed<dtype_t<C.dtype>, C.vector> gate[kAccesses], up[kAccesses];
};

/// Loads the columns from `column` on, where there are any.
template <SiluAndMulGroupsConfig C>
QN_DEVICE void load_gated(const SiluAndMulGroupsParams& p, i64 row, i64 column, GatedPart<C>& part) {
  using T = dtype_t<C.dtype>;
  const T* from = static_cast<const T*>(p.x) + row * p.x_stride + column;
  QN_UNROLL
  for (int a = 0; a < part.kAccesses; ++a) {
    if (row >= p.tokens || column + a * part.kStep >= p.intermediate) continue;
    part.gate[a] = load_packed<T, C.vector>(from + a * part.kStep);
    part.up[a] = load_packed<T, C.vector>(from + p.intermediate + a * part.kStep);
  }
}

/// y of the group, rounded and stored. Returns its scale, in all of its lanes.
template <SiluAndMulGroupsConfig C>
QN_DEVICE f32 store_gated(const SiluAndMulGroupsParams& p, i64 row, i64 column, const GatedPart<C>& part) {
  using Q = dtype_t<C.out_dtype>;
  f32 y[GatedPart<C>::kAccesses][C.vector];
  f32 amax = 0.f;
  QN_UNROLL
  for (int a = 0; a < part.kAccesses; ++a) {
    if (row >= p.tokens || column + a * part.kStep >= p.intermediate) continue;
    f32 g[C.vector], u[C.vector];
    unpack(part.gate[a], g);
    unpack(part.up[a], u);
    QN_UNROLL
    for (int j = 0; j < C.vector; ++j) {
      y[a][j] = silu(g[j]) * u[j];
      amax = ptx::fmax_nan(amax, ptx::fabs(y[a][j]));
    }
  }
  const f32 scale = fp8_scale<C.out_dtype>(warp_max_nan<kFp8GroupLanes>(amax), false), inverse = fp8_inverse(scale);
  Q* to = static_cast<Q*>(p.out) + row * p.out_stride + column;
  QN_UNROLL
  for (int a = 0; a < part.kAccesses; ++a) {
    if (row >= p.tokens || column + a * part.kStep >= p.intermediate) continue;
    QN_UNROLL
    for (int j = 0; j < C.vector; ++j) y[a][j] = y[a][j] * inverse;
    store_f32<Q, C.vector>(to + a * part.kStep, y[a]);
  }
  return scale;
}

template <SiluAndMulGroupsConfig C> QN_DEVICE void silu_and_mul_groups(const SiluAndMulGroupsParams& p) {
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  store_fp8_groups<GatedPart<C>, C.vector, C.steps, C.threads>(
      p.tokens, p.intermediate, p.scales, p.scale_strides, [&](i64 row, i64 column, GatedPart<C>& part) { load_gated<C>(p, row, column, part); },
      [&](i64 row, i64 column, const GatedPart<C>& part) { return store_gated<C>(p, row, column, part); });
}

}  // namespace quern::activation
