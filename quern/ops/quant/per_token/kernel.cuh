// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// scales[i] = max(min(max_j |x[i, j]|, upper_bound), amax_floor) / largest, q[i, j] = x[i, j] * (1 / scales[i])
// Rows are held in registers or read twice: bricks/rows/whole.cuh. A maximum has no order.
#pragma once
#include "quern/bricks/rows/whole.cuh"
#include "quern/kit/fp8_scale.cuh"
#include "quern/ops/quant/per_token/spec.h"

namespace quern::quant {

template <PerTokenConfig C> QN_DEVICE void per_token_row(const PerTokenParams& p) {
  using T = dtype_t<C.x_dtype>;
  using Q = dtype_t<C.q_dtype>;
  constexpr int kUnit = 16 / size_of(C.x_dtype), kVector = C.units.vector;
  QN_SMEM(smem);
  rows::RowReducer reducer{reinterpret_cast<f32*>(smem), 0};
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  rows::each_row<C.units, C.threads>(p.m, [&](i64 row) {
    const T* x = static_cast<const T*>(p.x) + row * p.x_stride;
    Q* q = static_cast<Q*>(p.q) + row * p.q_stride;
    const auto make = [&](i64 column, f32(&v)[kUnit]) { rows::load_unit<T, kUnit, kVector>(x, column, p.k, v); };
    rows::WholeRow<C.units, kUnit, C.threads, decltype(make)> whole{p.k, int(threadIdx.x) % C.units.row_threads, make, {}};
    rows::load_row(whole);
    f32 amax = 0.f;
    rows::each_unit(whole, [&](i64, const f32(&v)[kUnit]) {
      QN_UNROLL
      for (int j = 0; j < kUnit; ++j) amax = ptx::fmax_nan(amax, ptx::fabs(v[j]));
    });
    amax = rows::row_max_nan<C.units, C.threads>(amax, reducer);
    if constexpr (C.bounded != 0) {
      const f32 bound = ptx::ld_global<f32>(p.upper_bound);
      if (bound < amax) amax = bound;  // not of a NaN
    }
    const f32 scale = fp8_scale<C.q_dtype>(amax, false, f32(p.amax_floor)), inverse = fp8_inverse(scale);
    if (threadIdx.x % C.units.row_threads == 0) static_cast<f32*>(p.scales)[row * p.scale_stride] = scale;
    rows::each_unit(whole, [&](i64 column, const f32(&v)[kUnit]) {
      f32 y[kUnit];
      QN_UNROLL
      for (int j = 0; j < kUnit; ++j) y[j] = v[j] * inverse;
      rows::store_unit<Q, kUnit, kVector>(q, column, p.k, y);
    });
  });
}

}  // namespace quern::quant
