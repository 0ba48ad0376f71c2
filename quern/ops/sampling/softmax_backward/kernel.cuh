// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// dlogits[row, i] = y[row, i] * (dy[row, i] - sum_j dy[row, j] * y[row, j]) / temperature
// A row that fits belongs to a few lanes, a warp or a block, which holds it: softmax_backward_row. Of longer ones softmax_backward_dots
// makes the sums of chunks; then softmax_backward_results reads the row again, each warp adding up the chunks' sums for itself: lane l adds
// l, l + 32, ..., and then the lanes by a butterfly.
#pragma once
#include "quern/bricks/rows/chunks.cuh"
#include "quern/bricks/rows/dots.cuh"
#include "quern/bricks/rows/whole.cuh"
#include "quern/ops/sampling/softmax_backward/spec.h"

namespace quern::sampling {

/// 1 / temperature of a row; 0 where softmax chose the largest.
QN_DEVICE f32 inverse_temperature(const SoftmaxBackwardParams& p, i64 row) {
  const f32 temperature = p.temperatures ? ptx::ld_global<f32>(p.temperatures + row) : f32(p.temperature);
  return temperature < f32(kGreedyTemperature) ? f32(0.f) : ptx::div(f32(1.f), temperature);
}

template <SoftmaxBackwardConfig C> constexpr int kSoftmaxUnit = 16 / size_of(C.dtype);

/// A unit of dy and of y.
template <SoftmaxBackwardConfig C>
QN_DEVICE void load_pair(const SoftmaxBackwardParams& p, i64 row, i64 column, i64 end, f32 (&dy)[kSoftmaxUnit<C>],
                         f32 (&y)[kSoftmaxUnit<C>]) {
  using T = dtype_t<C.dtype>;
  rows::load_unit<T, kSoftmaxUnit<C>, C.dots.vector>(static_cast<const T*>(p.dy) + row * p.dy_stride, column, end, dy);
  rows::load_unit<T, kSoftmaxUnit<C>, C.dots.vector>(static_cast<const T*>(p.y) + row * p.y_stride, column, end, y);
}

template <SoftmaxBackwardConfig C> QN_DEVICE void softmax_backward_row(const SoftmaxBackwardParams& p) {
  using Out = dtype_t<C.out_dtype>;
  constexpr int kUnit = kSoftmaxUnit<C>;
  QN_SMEM(smem);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  rows::each_dot<C.dots, kUnit, C.threads>(
      p.rows, p.vocab, reinterpret_cast<f32*>(smem),
      [&](i64 row, i64 column, i64 end, f32(&dy)[kUnit], f32(&y)[kUnit]) { load_pair<C>(p, row, column, end, dy, y); },
      [](i64, i64, f32) {},
      [&](i64 row, i64 column, f32 dot, const f32(&dy)[kUnit], const f32(&y)[kUnit]) {
        const f32 inverse = inverse_temperature(p, row);
        f32 v[kUnit];
        QN_UNROLL
        for (int j = 0; j < kUnit; ++j) v[j] = y[j] * ((dy[j] - dot) * inverse);
        rows::store_unit<Out, kUnit, C.dots.vector>(static_cast<Out*>(p.dlogits) + row * p.dlogits_stride, column, p.vocab, v);
      });
}

template <SoftmaxBackwardConfig C> QN_DEVICE void softmax_backward_dots(const SoftmaxBackwardParams& p) {
  constexpr int kUnit = kSoftmaxUnit<C>;
  QN_SMEM(smem);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  rows::each_dot<C.dots, kUnit, C.threads>(
      p.rows, p.vocab, reinterpret_cast<f32*>(smem),
      [&](i64 row, i64 column, i64 end, f32(&dy)[kUnit], f32(&y)[kUnit]) { load_pair<C>(p, row, column, end, dy, y); },
      [&](i64 row, i64 chunk, f32 dot) { ptx::st_global<f32>(static_cast<f32*>(p.parts) + row * p.chunks + chunk, dot); },
      [](i64, i64, f32, const f32(&)[kUnit], const f32(&)[kUnit]) {});
}

/// An access of dy and of y.
template <SoftmaxResultsConfig C> struct SoftmaxOperands {
  Packed<dtype_t<C.dtype>, C.chunks.vector> dy, y;
};

template <SoftmaxResultsConfig C> QN_DEVICE void softmax_backward_results(const SoftmaxBackwardParams& p) {
  using T = dtype_t<C.dtype>;
  using Out = dtype_t<C.out_dtype>;
  constexpr int kVector = C.chunks.vector;
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  f32 dot = 0.f, inverse = 0.f;
  rows::each_chunk<SoftmaxOperands<C>, C.chunks, C.threads>(
      p.rows, p.vocab,
      [&](i64 row, i64) {
        f32 sum = 0.f;
        for (i64 i = ptx::lane_id(); i < p.chunks; i += 32)
          sum = sum + ptx::ld_global<f32>(static_cast<const f32*>(p.parts) + row * p.chunks + i);
        dot = warp_sum(sum);
        inverse = inverse_temperature(p, row);
      },
      [&](i64 row, i64 column, SoftmaxOperands<C>& held) {
        held.dy = load_packed<T, kVector>(static_cast<const T*>(p.dy) + row * p.dy_stride + column);
        held.y = load_packed<T, kVector>(static_cast<const T*>(p.y) + row * p.y_stride + column);
      },
      [&](i64 row, i64 column, const SoftmaxOperands<C>& held) {
        f32 dy[kVector], y[kVector];
        unpack(held.dy, dy);
        unpack(held.y, y);
        QN_UNROLL
        for (int j = 0; j < kVector; ++j) y[j] = y[j] * ((dy[j] - dot) * inverse);
        rows::store_unit<Out, kVector, kVector>(static_cast<Out*>(p.dlogits) + row * p.dlogits_stride, column, p.vocab, y);
      });
}

}  // namespace quern::sampling
