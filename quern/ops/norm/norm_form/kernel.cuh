// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// s = x (+ residual); rms: y = s / sqrt(mean(s^2) + eps) * (weight + weight_bias); centred: d = s - mean(s), y = d / sqrt(mean(d^2) + eps)
// * weight + bias out = y, or y * (1 / scale) in FP8. Rows are held in registers or read for each pass: bricks/rows/whole.cuh, with the
// order of its sums.
#pragma once
#include "quern/bricks/rows/whole.cuh"
#include "quern/kit/fp8_scale.cuh"
#include "quern/ops/norm/norm_form/spec.h"

namespace quern::norm {

template <NormFormConfig C> constexpr int kFormUnit = 16 / size_of(C.dtype);

/// Element of a row's first column.
template <NormFormConfig C> QN_DEVICE i64 row_start(const NormFormParams& p, i64 row, i64 token_stride, i64 head_stride) {
  if constexpr (C.heads == 0) {
    return row * token_stride;
  } else {
    const i64 token = row / p.heads;
    return token * token_stride + (row - token * p.heads) * head_stride;
  }
}

/// What a row's results are made of.
struct RowFactors {
  f32 mean;   ///< of the row, where it is centred
  f32 scale;  ///< 1 / sqrt(mean square + eps)
};

/// The results of a unit.
template <NormFormConfig C>
QN_DEVICE void results_of(const NormFormParams& p, i64 column, const f32 (&v)[kFormUnit<C>], const RowFactors& row,
                          f32 (&y)[kFormUnit<C>]) {
  using W = dtype_t<C.weight_dtype>;
  f32 weight[kFormUnit<C>], bias[kFormUnit<C>];
  if constexpr (C.weight != Weight::none)
    rows::load_unit<W, kFormUnit<C>, C.units.vector>(static_cast<const W*>(p.weight), column, p.hidden, weight);
  if constexpr (C.bias != 0) rows::load_unit<W, kFormUnit<C>, C.units.vector>(static_cast<const W*>(p.bias), column, p.hidden, bias);
  QN_UNROLL
  for (int j = 0; j < kFormUnit<C>; ++j) {
    if constexpr (C.centred != 0) y[j] = (v[j] - row.mean) * row.scale;
    else y[j] = v[j] * row.scale;
    if constexpr (C.weight == Weight::biased) y[j] = y[j] * (weight[j] + f32(p.weight_bias));
    if constexpr (C.weight == Weight::plain && C.bias == 0) y[j] = y[j] * weight[j];
    if constexpr (C.weight == Weight::plain && C.bias != 0) y[j] = ptx::fma(y[j], weight[j], bias[j]);
    if constexpr (C.weight == Weight::none && C.bias != 0) y[j] = y[j] + bias[j];
  }
}

/// The largest |y| of a unit, past the row's end nothing.
template <NormFormConfig C> QN_DEVICE f32 largest_of(const NormFormParams& p, i64 column, const f32 (&y)[kFormUnit<C>]) {
  f32 amax = 0.f;
  QN_UNROLL
  for (int j = 0; j < kFormUnit<C>; ++j)
    if (column + j < p.hidden) amax = ptx::fmax_nan(amax, ptx::fabs(y[j]));
  return amax;
}

/// Rounds and stores the results of a unit. `scale` is the row's, of results that have one a row or all one. All lanes of a warp meet here.
template <NormFormConfig C>
QN_DEVICE void store_results(const NormFormParams& p, i64 row, i64 column, f32 (&y)[kFormUnit<C>], f32 scale) {
  using Out = dtype_t<C.out_dtype>;
  if constexpr (C.scales == Fp8Scales::group) {
    constexpr int kLanes = kFp8Group / kFormUnit<C>;
    scale = fp8_scale<C.out_dtype>(warp_max_nan<kLanes>(largest_of<C>(p, column, y)), false, f32(p.amax_floor));
    if (column < p.hidden && threadIdx.x % kLanes == 0)
      static_cast<f32*>(p.scales)[row * p.scale_strides[0] + i64(u64(column) / kFp8Group) * p.scale_strides[1]] = scale;
  }
  if constexpr (C.scales != Fp8Scales::none) {
    const f32 inverse = fp8_inverse(scale);
    QN_UNROLL
    for (int j = 0; j < kFormUnit<C>; ++j) y[j] = y[j] * inverse;
  }
  Out* to = static_cast<Out*>(p.out) + row_start<C>(p, row, p.out_stride, p.out_head_stride);
  rows::store_unit<Out, kFormUnit<C>, C.units.vector>(to, column, p.hidden, y);
}

/// Mean and scale of a row.
template <NormFormConfig C, class Row> QN_DEVICE RowFactors factors_of(const NormFormParams& p, const Row& whole,
                                                                       rows::RowReducer& reducer) {
  constexpr int kUnit = kFormUnit<C>;
  const f32 hidden = f32(float(p.hidden));
  RowFactors row{f32(0.f), f32(0.f)};
  if constexpr (C.centred != 0) {
    f32 sum = 0.f;
    rows::each_unit(whole, [&](i64, const f32(&v)[kUnit]) {
      QN_UNROLL
      for (int j = 0; j < kUnit; ++j) sum = sum + v[j];
    });
    row.mean = ptx::div(rows::row_sum<C.units, C.threads>(sum, reducer), hidden);
  }
  f32 squares = 0.f;
  rows::each_unit(whole, [&](i64 column, const f32(&v)[kUnit]) {
    QN_UNROLL
    for (int j = 0; j < kUnit; ++j) {
      if constexpr (C.centred != 0) {
        const f32 d = column + j < p.hidden ? v[j] - row.mean : f32(0.f);
        squares = ptx::fma(d, d, squares);
      } else {
        squares = ptx::fma(v[j], v[j], squares);
      }
    }
  });
  row.scale = ptx::rsqrt_approx(ptx::div(rows::row_sum<C.units, C.threads>(squares, reducer), hidden) + f32(p.eps));
  return row;
}

/// The scale of a row's FP8 results, where it is one for the row or for all.
template <NormFormConfig C, class Row>
QN_DEVICE f32 fp8_scale_of(const NormFormParams& p, i64 row, const Row& whole, const RowFactors& factors, rows::RowReducer& reducer) {
  constexpr int kUnit = kFormUnit<C>;
  if constexpr (C.scales == Fp8Scales::tensor) {
    return ptx::ld_global<f32>(static_cast<const f32*>(p.scales));
  } else if constexpr (C.scales == Fp8Scales::token) {
    f32 amax = 0.f;
    rows::each_unit(whole, [&](i64 column, const f32(&v)[kUnit]) {
      f32 y[kUnit];
      results_of<C>(p, column, v, factors, y);
      amax = ptx::fmax_nan(amax, largest_of<C>(p, column, y));
    });
    const f32 scale = fp8_scale<C.out_dtype>(rows::row_max_nan<C.units, C.threads>(amax, reducer), false, f32(p.amax_floor));
    if (threadIdx.x % C.units.row_threads == 0) static_cast<f32*>(p.scales)[row * p.scale_strides[0]] = scale;
    return scale;
  } else {
    return f32(1.f);
  }
}

template <NormFormConfig C> QN_DEVICE void norm_row_form(const NormFormParams& p) {
  using T = dtype_t<C.dtype>;
  constexpr int kUnit = kFormUnit<C>, kVector = C.units.vector;
  QN_SMEM(smem);
  rows::RowReducer reducer{reinterpret_cast<f32*>(smem), 0};
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  rows::each_row<C.units, C.threads>(p.rows, [&](i64 row) {
    const T* x = static_cast<const T*>(p.x) + row_start<C>(p, row, p.x_stride, p.x_head_stride);
    T* residual = static_cast<T*>(p.residual) + row * p.residual_stride;
    const auto make = [&](i64 column, f32(&v)[kUnit]) {
      rows::load_unit<T, kUnit, kVector>(x, column, p.hidden, v);
      if constexpr (C.add_residual != 0) {
        f32 r[kUnit];
        rows::load_unit<T, kUnit, kVector>(residual, column, p.hidden, r);
        QN_UNROLL
        for (int j = 0; j < kUnit; ++j) v[j] = v[j] + r[j];
      }
    };
    rows::WholeRow<C.units, kUnit, C.threads, decltype(make)> whole{p.hidden, int(threadIdx.x) % C.units.row_threads, make, {}};
    rows::load_row(whole);
    const RowFactors factors = factors_of<C>(p, whole, reducer);
    const f32 scale = fp8_scale_of<C>(p, row, whole, factors, reducer);
    // Last, as the sum replaces what a row that is not held would read again
    rows::each_unit(whole, [&](i64 column, const f32(&v)[kUnit]) {
      if constexpr (C.add_residual != 0) rows::store_unit<T, kUnit, kVector>(residual, column, p.hidden, v);
      f32 y[kUnit];
      results_of<C>(p, column, v, factors, y);
      store_results<C>(p, row, column, y, scale);
    });
  });
}

}  // namespace quern::norm
