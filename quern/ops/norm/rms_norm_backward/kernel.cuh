// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// r = 1 / sqrt(mean_h(x[t]^2) + eps), g = dy[t] * (weight + weight_bias)
// dx[t, h] = r * (g[h] - x[t, h] * r * mean_h(g * x[t] * r)), parts[b, h] = sum of dy[t, h] * x[t, h] * r over the rows t of block b
// A row belongs to row_threads threads, each of which owns units of 16 bytes, as in norm_row. A block walks over rows with the
// stride of the grid and asks for its next row before it reduces the current one. A thread meets the same columns in each of its
// rows, so it adds their dw by itself; the warps of a block add up only at its end. All sums are fixed trees.
#pragma once
#include "quern/ops/norm/norm_row/unit.cuh"
#include "quern/ops/norm/rms_norm_backward/spec.h"

namespace quern::norm {

/// What all elements of a row share: r, and mean(g * x) * r.
struct RowFactors {
  f32 scale, mean;
};

/// Two places of partial sums, used in turn: the barrier of one sum tells that the other's was read.
template <NormRowBackwardConfig C>
QN_DEVICE RowFactors row_factors(const NormRowBackwardParams& p, f32 squares, f32 dot, f32* scratch) {
  if constexpr (C.row_threads == 32) {
    squares = warp_sum(squares);
    dot = warp_sum(dot);
  } else {
    squares = block_sum<C.threads>(squares, scratch);
    dot = block_sum<C.threads>(dot, scratch + C.threads / 32);
  }
  const f32 hidden = float(p.hidden);
  const f32 scale = ptx::rsqrt_approx(ptx::div(squares, hidden) + f32(p.eps));
  return {scale, ptx::div(dot, hidden) * scale};
}

/// dx of one element; dw grows by its term.
QN_DEVICE f32 element(f32 dy, f32 x, f32 weight, RowFactors row, f32& dw) {
  const f32 normed = x * row.scale;
  dw = ptx::fma(dy, normed, dw);
  return row.scale * ptx::fma(-normed, row.mean, dy * weight);
}

template <NormRowBackwardConfig C> struct HeldRows {
  Unit<C> dy[C.held], x[C.held];
};

template <NormRowBackwardConfig C> QN_DEVICE i64 first_element(int i) {
  return i64(i * C.row_threads + int(threadIdx.x) % C.row_threads) * kUnit<C>;
}

template <NormRowBackwardConfig C> QN_DEVICE void load_row(const NormRowBackwardParams& p, i64 row, HeldRows<C>& held) {
  using T = dtype_t<C.dtype>;
  QN_UNROLL
  for (int i = 0; i < C.held; ++i) {
    load_unit<C>(static_cast<const T*>(p.dy) + row * p.dy_stride, first_element<C>(i), p.hidden, held.dy[i]);
    load_unit<C>(static_cast<const T*>(p.x) + row * p.x_stride, first_element<C>(i), p.hidden, held.x[i]);
  }
}

/// dy, x and weight of the unit at element h. weight comes from L1: registers for it would spill.
template <NormRowBackwardConfig C>
QN_DEVICE void unit_operands(const NormRowBackwardParams& p, const HeldRows<C>& held, int i, i64 h, f32 (&dy)[kUnit<C>], f32 (&x)[kUnit<C>],
                             f32 (&weight)[kUnit<C>]) {
  Unit<C> weights;
  load_unit<C>(static_cast<const dtype_t<C.dtype>*>(p.weight), h, p.hidden, weights);
  unit_values<C>(held.dy[i], h, p.hidden, dy);
  unit_values<C>(held.x[i], h, p.hidden, x);
  unit_values<C>(weights, h, p.hidden, weight);
  QN_UNROLL
  for (int j = 0; j < kUnit<C>; ++j) weight[j] = weight[j] + f32(p.weight_bias);
}

/// dx of a row whose units are held, and its terms of dw.
template <NormRowBackwardConfig C>
QN_DEVICE void finish_row(const NormRowBackwardParams& p, i64 row, const HeldRows<C>& held, RowFactors factors, f32 (&dw)[C.held][kUnit<C>]) {
  using T = dtype_t<C.dtype>;
  QN_UNROLL
  for (int i = 0; i < C.held; ++i) {
    const i64 h = first_element<C>(i);
    f32 dy[kUnit<C>], x[kUnit<C>], weight[kUnit<C>], dx[kUnit<C>];
    unit_operands<C>(p, held, i, h, dy, x, weight);
    QN_UNROLL
    for (int j = 0; j < kUnit<C>; ++j) dx[j] = element(dy[j], x[j], weight[j], factors, dw[i][j]);
    store_unit<C>(static_cast<T*>(p.dx) + row * p.dx_stride, h, p.hidden, dx);
  }
}

/// The block's row of parts; a unit past the end of the row is not stored.
template <NormRowBackwardConfig C> QN_DEVICE void store_part(const NormRowBackwardParams& p, const f32 (&dw)[C.held][kUnit<C>]) {
  f32* const part = static_cast<f32*>(p.parts) + i64(blockIdx.x) * p.part_stride;
  QN_UNROLL
  for (int i = 0; i < C.held; ++i) {
    const i64 h = first_element<C>(i);
    QN_UNROLL
    for (int j = 0; j < kUnit<C>; j += 4) {
      const f32 four[4] = {dw[i][j], dw[i][j + 1], dw[i][j + 2], dw[i][j + 3]};
      if (h < p.hidden) store_f32<f32, 4>(part + h + j, four);
    }
  }
}

/// dw of the block's warps, each of which has other rows and the same columns: from warp to warp, in ascending order.
template <NormRowBackwardConfig C> QN_DEVICE void add_warps(f32 (&dw)[C.held][kUnit<C>], f32* handed) {
  constexpr int kWarps = C.threads / 32;
  QN_NO_UNROLL
  for (int w = 0; w < kWarps; ++w) {
    if (int(threadIdx.x) / 32 == w) {
      QN_UNROLL
      for (int i = 0; i < C.held; ++i) {
        QN_UNROLL
        for (int j = 0; j < kUnit<C>; ++j) {
          f32& at = handed[(i * kUnit<C> + j) * 32 + int(threadIdx.x) % 32];
          if (w > 0) dw[i][j] = at + dw[i][j];
          at = dw[i][j];
        }
      }
    }
    ptx::sync_block();
  }
}

template <NormRowBackwardConfig C> QN_DEVICE void backward_held(const NormRowBackwardParams& p, f32* scratch, f32* handed) {
  constexpr int kRows = C.threads / C.row_threads;
  constexpr bool kAhead = C.held <= 2;  // registers hold the next row as well
  const i64 step = i64(gridDim.x) * kRows;
  i64 row = i64(blockIdx.x) * kRows + int(threadIdx.x) / C.row_threads;
  f32 dw[C.held][kUnit<C>];
  QN_UNROLL
  for (int i = 0; i < C.held; ++i) {
    QN_UNROLL
    for (int j = 0; j < kUnit<C>; ++j) dw[i][j] = 0.f;
  }
  HeldRows<C> next;
  if (kAhead && row < p.tokens) load_row<C>(p, row, next);
  for (; row < p.tokens; row += step) {
    if (!kAhead) load_row<C>(p, row, next);
    const HeldRows<C> held = next;
    f32 squares = 0.f, dot = 0.f;
    QN_UNROLL
    for (int i = 0; i < C.held; ++i) {
      f32 dy[kUnit<C>], x[kUnit<C>], weight[kUnit<C>];
      unit_operands<C>(p, held, i, first_element<C>(i), dy, x, weight);
      QN_UNROLL
      for (int j = 0; j < kUnit<C>; ++j) {
        squares = ptx::fma(x[j], x[j], squares);
        dot = ptx::fma(dy[j] * weight[j], x[j], dot);
      }
    }
    if (kAhead && row + step < p.tokens) load_row<C>(p, row + step, next);
    finish_row<C>(p, row, held, row_factors<C>(p, squares, dot, scratch), dw);
  }
  if constexpr (C.with_dw != 0) {
    if constexpr (C.row_threads == 32) add_warps<C>(dw, handed);
    if (C.row_threads != 32 || int(threadIdx.x) / 32 == C.threads / 32 - 1) store_part<C>(p, dw);
  }
}

/// Adds to the part at element h; the block's first row starts it.
template <NormRowBackwardConfig C> QN_DEVICE void load_part(const f32* part, bool first, f32 (&dw)[C.vector]) {
  constexpr int kFew = min_of(C.vector, 4);
  QN_UNROLL
  for (int j = 0; j < C.vector; j += kFew) {
    f32 few[kFew] = {};
    if (!first) load_f32<f32, kFew>(part + j, few);
    QN_UNROLL
    for (int k = 0; k < kFew; ++k) dw[j + k] = few[k];
  }
}
template <NormRowBackwardConfig C> QN_DEVICE void store_part(f32* part, const f32 (&dw)[C.vector]) {
  constexpr int kFew = min_of(C.vector, 4);
  QN_UNROLL
  for (int j = 0; j < C.vector; j += kFew) {
    f32 few[kFew];
    QN_UNROLL
    for (int k = 0; k < kFew; ++k) few[k] = dw[j + k];
    store_f32<f32, kFew>(part + j, few);
  }
}

/// Rows too long for registers, and unaligned ones: the row is read twice, and dw grows in the block's part. All sums have the
/// order of backward_held.
template <NormRowBackwardConfig C> QN_DEVICE void backward_reread(const NormRowBackwardParams& p, f32* scratch) {
  using T = dtype_t<C.dtype>;
  const T* const weights = static_cast<const T*>(p.weight);
  f32* const part = static_cast<f32*>(p.parts) + i64(blockIdx.x) * p.part_stride;
  for (i64 row = blockIdx.x; row < p.tokens; row += gridDim.x) {
    const T* const dy_row = static_cast<const T*>(p.dy) + row * p.dy_stride;
    const T* const x_row = static_cast<const T*>(p.x) + row * p.x_stride;
    f32 squares = 0.f, dot = 0.f;
    each_access<C>(p.hidden, [&](i64 h) {
      f32 dy[C.vector], x[C.vector], weight[C.vector];
      load_f32<T, C.vector>(dy_row + h, dy);
      load_f32<T, C.vector>(x_row + h, x);
      load_f32<T, C.vector>(weights + h, weight);
      QN_UNROLL
      for (int j = 0; j < C.vector; ++j) weight[j] = weight[j] + f32(p.weight_bias);
      QN_UNROLL
      for (int j = 0; j < C.vector; ++j) {
        squares = ptx::fma(x[j], x[j], squares);
        dot = ptx::fma(dy[j] * weight[j], x[j], dot);
      }
    });
    const RowFactors factors = row_factors<C>(p, squares, dot, scratch);
    each_access<C>(p.hidden, [&](i64 h) {
      f32 dy[C.vector], x[C.vector], weight[C.vector], dx[C.vector], dw[C.vector] = {};
      load_f32<T, C.vector>(dy_row + h, dy);
      load_f32<T, C.vector>(x_row + h, x);
      load_f32<T, C.vector>(weights + h, weight);
      QN_UNROLL
      for (int j = 0; j < C.vector; ++j) weight[j] = weight[j] + f32(p.weight_bias);
      if constexpr (C.with_dw != 0) load_part<C>(part + h, row == i64(blockIdx.x), dw);
      QN_UNROLL
      for (int j = 0; j < C.vector; ++j) dx[j] = element(dy[j], x[j], weight[j], factors, dw[j]);
      store_f32<T, C.vector>(static_cast<T*>(p.dx) + row * p.dx_stride + h, dx);
      if constexpr (C.with_dw != 0) store_part<C>(part + h, dw);
    });
  }
}

template <NormRowBackwardConfig C> QN_DEVICE void norm_row_backward(const NormRowBackwardParams& p) {
  constexpr auto S = norm_row_backward_smem(C);
  QN_SMEM(smem);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  if constexpr (C.held > 0) backward_held<C>(p, reinterpret_cast<f32*>(smem + S.reduce), reinterpret_cast<f32*>(smem + S.dw));
  else backward_reread<C>(p, reinterpret_cast<f32*>(smem + S.reduce));
}

}  // namespace quern::norm
