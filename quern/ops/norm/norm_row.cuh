// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[t, h] = s[t, h] / sqrt(mean_h(s[t]^2) + eps) * weight[h], s = x (+ residual)
// A row belongs to row_threads threads; a block walks over rows with the stride of the grid and asks for its next row before
// it reduces the current one, so that loads are always in flight. The sum of squares is a fixed tree over the row's threads.
#pragma once
#include "quern/kit/kit.cuh"
#include "quern/ops/norm/norm_row_spec.h"

namespace quern::norm {

/// What a thread holds of one row, as it lies in memory.
template <NormRowConfig C> struct HeldRow {
  using T = dtype_t<C.dtype>;
  Packed<T, C.vector> x[C.held];
  Packed<T, C.vector> residual[C.add_residual ? C.held : 1];
};

template <NormRowConfig C>
QN_DEVICE void load_row(const NormRowParams& p, i64 row, int lane, HeldRow<C>& held) {
  using T = dtype_t<C.dtype>;
  const T* x = static_cast<const T*>(p.x) + row * p.x_stride;
  QN_UNROLL
  for (int i = 0; i < C.held; ++i) {
    const i64 h = i64(i * C.row_threads + lane) * C.vector;
    if (h < p.hidden) held.x[i] = load_packed<T, C.vector, Cache::normal>(x + h);
  }
  if constexpr (C.add_residual != 0) {
    const T* residual = static_cast<const T*>(p.residual) + row * p.residual_stride;
    QN_UNROLL
    for (int i = 0; i < C.held; ++i) {
      const i64 h = i64(i * C.row_threads + lane) * C.vector;
      if (h < p.hidden) held.residual[i] = load_packed<T, C.vector, Cache::normal>(residual + h);
    }
  }
}

/// The sum over the threads of a row.
template <NormRowConfig C> QN_DEVICE f32 row_sum(f32 v, f32* scratch) {
  if constexpr (C.row_threads == 32) return warp_sum(v);
  else return block_sum<C.threads>(v, scratch);
}

/// Values of access i of a held row; with a residual, their sum is also stored into it.
template <NormRowConfig C>
QN_DEVICE void row_values(const NormRowParams& p, const HeldRow<C>& held, int i, f32 (&v)[C.vector]) {
  unpack(held.x[i], v);
  if constexpr (C.add_residual != 0) {
    f32 r[C.vector];
    unpack(held.residual[i], r);
    QN_UNROLL
    for (int j = 0; j < C.vector; ++j) v[j] = v[j] + r[j];
  }
}

template <NormRowConfig C>
QN_DEVICE void write_row(const NormRowParams& p, i64 row, int lane, const f32 (&values)[C.held][C.vector], f32 scale) {
  using T = dtype_t<C.dtype>;
  T* out = static_cast<T*>(p.out) + row * p.out_stride;
  T* residual = static_cast<T*>(p.residual) + row * p.residual_stride;
  QN_UNROLL
  for (int i = 0; i < C.held; ++i) {
    const i64 h = i64(i * C.row_threads + lane) * C.vector;
    if (h >= p.hidden) continue;
    f32 weight[C.vector], y[C.vector];
    load_f32<T, C.vector, Cache::read_only>(static_cast<const T*>(p.weight) + h, weight);
    QN_UNROLL
    for (int j = 0; j < C.vector; ++j) y[j] = values[i][j] * scale * weight[j];
    store_f32<T, C.vector>(out + h, y);
    if constexpr (C.add_residual != 0) store_f32<T, C.vector>(residual + h, values[i]);
  }
}

template <NormRowConfig C> QN_DEVICE void norm_row_held(const NormRowParams& p, f32* scratch) {
  constexpr int kRows = C.threads / C.row_threads;
  const int lane = threadIdx.x % C.row_threads;
  const i64 step = i64(gridDim.x) * kRows;
  i64 row = i64(blockIdx.x) * kRows + threadIdx.x / C.row_threads;
  HeldRow<C> held;
  if (row < p.tokens) load_row<C>(p, row, lane, held);
  for (int slot = 0; row < p.tokens; row += step, slot ^= 1) {
    // Values of this row, then at once the loads of the next
    f32 values[C.held][C.vector];
    f32 squares = 0.f;
    QN_UNROLL
    for (int i = 0; i < C.held; ++i) {
      if (i64(i * C.row_threads + lane) * C.vector >= p.hidden) continue;
      row_values<C>(p, held, i, values[i]);
      QN_UNROLL
      for (int j = 0; j < C.vector; ++j) squares = squares + values[i][j] * values[i][j];
    }
    if (row + step < p.tokens) load_row<C>(p, row + step, lane, held);
    const f32 mean = row_sum<C>(squares, scratch + slot * (C.threads / 32)) / f32(p.hidden);
    write_row<C>(p, row, lane, values, ptx::rsqrt_approx(mean + p.eps));
  }
}

/// Rows too long for registers: the row is read twice.
template <NormRowConfig C> QN_DEVICE void norm_row_reread(const NormRowParams& p, f32* scratch) {
  using T = dtype_t<C.dtype>;
  int slot = 0;
  for (i64 row = blockIdx.x; row < p.tokens; row += gridDim.x, slot ^= 1) {
    const T* x = static_cast<const T*>(p.x) + row * p.x_stride;
    T* residual = static_cast<T*>(p.residual) + row * p.residual_stride;
    T* out = static_cast<T*>(p.out) + row * p.out_stride;
    const auto values_at = [&](i64 h, f32 (&v)[C.vector]) {
      load_f32<T, C.vector>(x + h, v);
      if constexpr (C.add_residual != 0) {
        f32 r[C.vector];
        load_f32<T, C.vector>(residual + h, r);
        for (int j = 0; j < C.vector; ++j) v[j] = v[j] + r[j];
      }
    };
    f32 squares = 0.f;
    for (i64 h = i64(threadIdx.x) * C.vector; h < p.hidden; h += C.threads * C.vector) {
      f32 v[C.vector];
      values_at(h, v);
      QN_UNROLL
      for (int j = 0; j < C.vector; ++j) squares = squares + v[j] * v[j];
    }
    const f32 mean = block_sum<C.threads>(squares, scratch + slot * (C.threads / 32)) / f32(p.hidden);
    const f32 scale = ptx::rsqrt_approx(mean + p.eps);
    for (i64 h = i64(threadIdx.x) * C.vector; h < p.hidden; h += C.threads * C.vector) {
      f32 v[C.vector], weight[C.vector], y[C.vector];
      values_at(h, v);
      load_f32<T, C.vector, Cache::read_only>(static_cast<const T*>(p.weight) + h, weight);
      QN_UNROLL
      for (int j = 0; j < C.vector; ++j) y[j] = v[j] * scale * weight[j];
      store_f32<T, C.vector>(out + h, y);
      if constexpr (C.add_residual != 0) store_f32<T, C.vector>(residual + h, v);
    }
  }
}

template <NormRowConfig C> QN_DEVICE void norm_row(const NormRowParams& p) {
  constexpr auto S = norm_row_smem(C);
  QN_SMEM(smem);
  f32* scratch = reinterpret_cast<f32*>(smem + S.reduce);
  ptx::grid_dependency_wait();
  if constexpr (C.held > 0) norm_row_held<C>(p, scratch);
  else norm_row_reread<C>(p, scratch);
  ptx::grid_launch_dependents();
}

}  // namespace quern::norm
