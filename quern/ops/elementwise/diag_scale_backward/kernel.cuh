// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// dx[t, h] = diagonal[t] * dy[t, h], sums[c, t] = sum of dy[t, h] * x[t, h] over the columns h of chunk c
// A chunk belongs to a few lanes, a warp or a block, which holds it in registers: each_dot.
#pragma once
#include "quern/bricks/rows/dots.cuh"
#include "quern/bricks/rows/whole.cuh"
#include "quern/ops/elementwise/diag_scale_backward/spec.h"

namespace quern::elementwise {

template <DiagScaleBackwardConfig C> QN_DEVICE void diag_scale_backward_chunk(const DiagScaleBackwardParams& p) {
  using T = dtype_t<C.dtype>;
  using Sum = dtype_t<C.sum_dtype>;
  constexpr int kUnit = 16 / size_of(C.dtype), kVector = C.dots.vector;
  QN_SMEM(smem);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  rows::each_dot<C.dots, kUnit, C.threads>(
      p.tokens, p.hidden, reinterpret_cast<f32*>(smem),
      [&](i64 row, i64 column, i64 end, f32(&dy)[kUnit], f32(&x)[kUnit]) {
        rows::load_unit<T, kUnit, kVector>(static_cast<const T*>(p.dy) + row * p.dy_stride, column, end, dy);
        if constexpr (C.with_sum != 0) rows::load_unit<T, kUnit, kVector>(static_cast<const T*>(p.x) + row * p.x_stride, column, end, x);
        else
          for (int j = 0; j < kUnit; ++j) x[j] = 0.f;
      },
      [&](i64 row, i64 chunk, f32 dot) {
        const f32 sum[1] = {dot};
        if constexpr (C.with_sum != 0) store_f32<Sum, 1>(static_cast<Sum*>(p.sums) + chunk * p.part_stride + row, sum);
      },
      [&](i64 row, i64 column, f32, const f32(&dy)[kUnit], const f32(&)[kUnit]) {
        if constexpr (C.with_dx != 0) {
          f32 factor[1], dx[kUnit];
          load_f32<T, 1>(static_cast<const T*>(p.diagonal) + row * p.diagonal_stride, factor);
          QN_UNROLL
          for (int j = 0; j < kUnit; ++j) dx[j] = factor[0] * dy[j];
          rows::store_unit<T, kUnit, kVector>(static_cast<T*>(p.dx) + row * p.dx_stride, column, p.hidden, dx);
        }
      });
}

}  // namespace quern::elementwise
