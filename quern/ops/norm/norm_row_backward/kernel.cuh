// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// rms: m = 0; centred: m = mean_h(x[t]); r = 1 / sqrt(mean_h((x[t] - m)^2) + eps), n = (x[t] - m) * r, g = dy[t] * (weight + weight_bias)
// dx[t, h] = r * (g[h] - mean_h(g) - n[h] * mean_h(g * n)) (+ dresidual[t, h]), with mean_h(g) where centred
// parts[b, h] = sums of dy[t, h] * n[h] and of dy[t, h] over the rows t of block b
// A row belongs to row_threads threads, each of which owns units of 16 bytes, as in norm_row. A block walks over rows with the
// stride of the grid and asks for its next row before it reduces the current one. A thread meets the same columns in each of its
// rows, so it adds their dw and dbias by itself; the warps of a block add up only at its end. All sums are fixed trees.
#pragma once
#include "quern/bricks/rows/whole.cuh"
#include "quern/ops/norm/norm_row/unit.cuh"
#include "quern/ops/norm/norm_row_backward/spec.h"

namespace quern::norm {

/// What all elements of a row share.
struct RowFactors {
  f32 mean;   ///< of x, where it is centred
  f32 scale;  ///< r
  f32 level;  ///< mean of g, where it is centred
  f32 slope;  ///< mean of g * n
};

/// Some columns of a row, 0 past its end.
template <int N> struct Columns {
  f32 dy[N], x[N], g[N];
};

/// g = dy * weight, rounded: fma and not *, which the compiler contracts with the sum that follows in one copy of a loop and not in
/// another.
template <NormRowBackwardConfig C, int N>
QN_DEVICE void weigh(const NormRowBackwardParams& p, i64 h, Columns<N>& v) {
  using W = dtype_t<C.weight_dtype>;
  if constexpr (C.with_weight != 0) {
    f32 weight[N];
    rows::load_unit<W, N, min_of(C.vector, N)>(static_cast<const W*>(p.weight), h, p.hidden, weight);
    QN_UNROLL
    for (int j = 0; j < N; ++j) v.g[j] = ptx::fma(v.dy[j], C.centred != 0 ? weight[j] : weight[j] + f32(p.weight_bias), f32(-0.f));
  } else {
    QN_UNROLL
    for (int j = 0; j < N; ++j) v.g[j] = v.dy[j];
  }
}

/// Two places of partial sums, used in turn: the barrier of one sum tells that the other's was read.
template <NormRowBackwardConfig C> QN_DEVICE void sum_two(f32& first, f32& second, f32* scratch) {
  if constexpr (C.row_threads == 32) {
    first = warp_sum(first);
    second = warp_sum(second);
  } else {
    first = block_sum<C.threads>(first, scratch);
    second = block_sum<C.threads>(second, scratch + C.threads / 32);
  }
}

/// The factors of a row. each_columns(mine, f) calls f(h, columns) for all columns of the thread, so many at a time, in one order; ahead()
/// is called behind the first pass over them.
template <NormRowBackwardConfig C, class Mine, class Ahead>
QN_DEVICE RowFactors factors_of(const NormRowBackwardParams& p, f32* scratch, const Mine& mine, const Ahead& ahead) {
  constexpr int N = Mine::kCount;
  const f32 hidden = float(p.hidden);
  RowFactors row{f32(0.f), f32(0.f), f32(0.f), f32(0.f)};
  if constexpr (C.centred != 0) {
    f32 sum = 0.f, level = 0.f;
    each_columns(mine, [&](i64, const Columns<N>& v) {
      QN_UNROLL
      for (int j = 0; j < N; ++j) {
        sum = sum + v.x[j];
        level = level + v.g[j];
      }
    });
    ahead();
    sum_two<C>(sum, level, scratch);
    row.mean = ptx::div(sum, hidden);
    row.level = ptx::div(level, hidden);
  }
  f32 squares = 0.f, dot = 0.f;
  each_columns(mine, [&](i64 h, const Columns<N>& v) {
    QN_UNROLL
    for (int j = 0; j < N; ++j) {
      f32 d = v.x[j];
      if constexpr (C.centred != 0) d = h + j < p.hidden ? d - row.mean : f32(0.f);
      squares = ptx::fma(d, d, squares);
      dot = ptx::fma(v.g[j], d, dot);
    }
  });
  if constexpr (C.centred == 0) ahead();
  sum_two<C>(squares, dot, scratch);
  row.scale = ptx::rsqrt_approx(ptx::div(squares, hidden) + f32(p.eps));
  row.slope = ptx::div(dot, hidden) * row.scale;
  return row;
}

/// dx of one element, less its factor r; dw and dbias grow by its terms.
template <NormRowBackwardConfig C> QN_DEVICE f32 element(f32 dy, f32 x, f32 g, const RowFactors& row, f32& dw, f32& dbias) {
  f32 normed;
  if constexpr (C.centred != 0) {
    normed = (x - row.mean) * row.scale;
    g = g - row.level;
  } else {
    normed = x * row.scale;
  }
  if constexpr (C.with_dw != 0) dw = ptx::fma(dy, normed, dw);
  if constexpr (C.with_dbias != 0) dbias = dbias + dy;
  return ptx::fma(-normed, row.slope, g);
}

/// dx, to which the gradient of the residual is added by one rounding: a product and a sum that the compiler contracts in one copy of a
/// loop and not in another would give a row other bits in another place.
template <NormRowBackwardConfig C, int N> QN_DEVICE void scale_and_add(f32 scale, const f32 (&more)[N], f32 (&dx)[N]) {
  QN_UNROLL
  for (int j = 0; j < N; ++j) dx[j] = C.add_gradient != 0 ? ptx::fma(scale, dx[j], more[j]) : scale * dx[j];
}

/// What a thread holds of a row.
template <NormRowBackwardConfig C> struct HeldRows {
  Unit<C> dy[C.held], x[C.held];
  Unit<C> dresidual[C.add_gradient != 0 ? C.held : 1];
};

/// Its sums over rows.
template <NormRowBackwardConfig C> struct HeldSums {
  f32 dw[C.with_dw != 0 ? C.held : 1][kUnit<C>];
  f32 dbias[C.with_dbias != 0 ? C.held : 1][kUnit<C>];
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
    if constexpr (C.add_gradient != 0)
      load_unit<C>(static_cast<const T*>(p.dresidual) + row * p.dresidual_stride, first_element<C>(i), p.hidden, held.dresidual[i]);
  }
}

/// The columns of held unit i, which is at element h. The weight comes from L1: registers for it would spill.
template <NormRowBackwardConfig C>
QN_DEVICE Columns<kUnit<C>> held_columns(const NormRowBackwardParams& p, const HeldRows<C>& held, int i, i64 h) {
  Columns<kUnit<C>> v;
  unit_values<C>(held.dy[i], h, p.hidden, v.dy);
  unit_values<C>(held.x[i], h, p.hidden, v.x);
  weigh<C, kUnit<C>>(p, h, v);
  return v;
}

/// All of them, for factors_of.
template <NormRowBackwardConfig C> struct HeldColumns {
  static constexpr int kCount = kUnit<C>;
  const NormRowBackwardParams& p;
  const HeldRows<C>& held;
};
template <NormRowBackwardConfig C, class F> QN_DEVICE void each_columns(const HeldColumns<C>& mine, const F& f) {
  QN_UNROLL
  for (int i = 0; i < C.held; ++i) f(first_element<C>(i), held_columns<C>(mine.p, mine.held, i, first_element<C>(i)));
}

/// dx of a row whose units are held, and its terms of dw and dbias.
template <NormRowBackwardConfig C>
QN_DEVICE void finish_row(const NormRowBackwardParams& p, i64 row, const HeldRows<C>& held, const RowFactors& factors, HeldSums<C>& sums) {
  QN_UNROLL
  for (int i = 0; i < C.held; ++i) {
    const i64 h = first_element<C>(i);
    const Columns<kUnit<C>> v = held_columns<C>(p, held, i, h);
    f32 dx[kUnit<C>];
    QN_UNROLL
    for (int j = 0; j < kUnit<C>; ++j)
      dx[j] = element<C>(v.dy[j], v.x[j], v.g[j], factors, sums.dw[C.with_dw != 0 ? i : 0][j], sums.dbias[C.with_dbias != 0 ? i : 0][j]);
    f32 more[kUnit<C>] = {};
    if constexpr (C.add_gradient != 0) unit_values<C>(held.dresidual[i], h, p.hidden, more);
    scale_and_add<C>(factors.scale, more, dx);
    store_unit<C>(static_cast<dtype_t<C.dtype>*>(p.dx) + row * p.dx_stride, h, p.hidden, dx);
  }
}

/// Sums into the block's part; a unit past the end of the row is not stored.
template <NormRowBackwardConfig C> QN_DEVICE void store_sums(f32* part, i64 hidden, const f32 (&sums)[C.held][kUnit<C>]) {
  QN_UNROLL
  for (int i = 0; i < C.held; ++i) {
    const i64 h = first_element<C>(i);
    QN_UNROLL
    for (int j = 0; j < kUnit<C>; j += 4) {
      const f32 four[4] = {sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]};
      if (h < hidden) store_f32<f32, 4>(part + h + j, four);
    }
  }
}

/// Sums of the block's warps, each of which has other rows and the same columns: from warp to warp, in ascending order.
template <NormRowBackwardConfig C> QN_DEVICE void add_warps(f32 (&sums)[C.held][kUnit<C>], f32* handed) {
  constexpr int kWarps = C.threads / 32;
  QN_NO_UNROLL
  for (int w = 0; w < kWarps; ++w) {
    if (int(threadIdx.x) / 32 == w) {
      QN_UNROLL
      for (int i = 0; i < C.held; ++i) {
        QN_UNROLL
        for (int j = 0; j < kUnit<C>; ++j) {
          f32& at = handed[(i * kUnit<C> + j) * 32 + int(threadIdx.x) % 32];
          if (w > 0) sums[i][j] = at + sums[i][j];
          at = sums[i][j];
        }
      }
    }
    ptx::sync_block();
  }
}

/// The block's sums over its rows, all of them seen.
template <NormRowBackwardConfig C> QN_DEVICE void finish_sums(f32* part, i64 hidden, f32 (&sums)[C.held][kUnit<C>], f32* handed) {
  if constexpr (C.row_threads == 32) add_warps<C>(sums, handed);
  if (C.row_threads != 32 || int(threadIdx.x) / 32 == C.threads / 32 - 1) store_sums<C>(part, hidden, sums);
}

template <NormRowBackwardConfig C> QN_DEVICE f32* part_of_block(const NormRowBackwardParams& p) {
  return static_cast<f32*>(p.parts) + i64(blockIdx.x) * p.part_stride;
}

template <NormRowBackwardConfig C> QN_DEVICE void backward_held(const NormRowBackwardParams& p, f32* scratch, f32* handed) {
  constexpr int kRows = C.threads / C.row_threads;
  constexpr bool kAhead = loads_ahead(C);
  const i64 step = i64(gridDim.x) * kRows;
  i64 row = i64(blockIdx.x) * kRows + int(threadIdx.x) / C.row_threads;
  HeldSums<C> sums = {};
  HeldRows<C> next;
  if (kAhead && row < p.tokens) load_row<C>(p, row, next);
  for (; row < p.tokens; row += step) {
    if (!kAhead) load_row<C>(p, row, next);
    const HeldRows<C> held = next;
    const RowFactors factors = factors_of<C>(p, scratch, HeldColumns<C>{p, held}, [&] {
      if (kAhead && row + step < p.tokens) load_row<C>(p, row + step, next);
    });
    finish_row<C>(p, row, held, factors, sums);
  }
  if constexpr (C.with_dw != 0) finish_sums<C>(part_of_block<C>(p), p.hidden, sums.dw, handed);
  if constexpr (C.with_dbias != 0) finish_sums<C>(part_of_block<C>(p) + p.dbias_part, p.hidden, sums.dbias, handed);
}

/// Adds to the part at element h; the block's first row starts it.
template <NormRowBackwardConfig C> QN_DEVICE void load_part(const f32* part, bool first, f32 (&sums)[C.vector]) {
  constexpr int kFew = min_of(C.vector, 4);
  QN_UNROLL
  for (int j = 0; j < C.vector; j += kFew) {
    f32 few[kFew] = {};
    if (!first) load_f32<f32, kFew>(part + j, few);
    QN_UNROLL
    for (int k = 0; k < kFew; ++k) sums[j + k] = few[k];
  }
}
template <NormRowBackwardConfig C> QN_DEVICE void store_part(f32* part, const f32 (&sums)[C.vector]) {
  constexpr int kFew = min_of(C.vector, 4);
  QN_UNROLL
  for (int j = 0; j < C.vector; j += kFew) {
    f32 few[kFew];
    QN_UNROLL
    for (int k = 0; k < kFew; ++k) few[k] = sums[j + k];
    store_f32<f32, kFew>(part + j, few);
  }
}

/// The columns of one access of a row.
template <NormRowBackwardConfig C> QN_DEVICE Columns<C.vector> read_columns(const NormRowBackwardParams& p, i64 row, i64 h) {
  using T = dtype_t<C.dtype>;
  Columns<C.vector> v;
  load_f32<T, C.vector>(static_cast<const T*>(p.dy) + row * p.dy_stride + h, v.dy);
  load_f32<T, C.vector>(static_cast<const T*>(p.x) + row * p.x_stride + h, v.x);
  weigh<C, C.vector>(p, h, v);
  return v;
}

/// All of the thread's columns of a row, for factors_of.
template <NormRowBackwardConfig C> struct ReadColumns {
  static constexpr int kCount = C.vector;
  const NormRowBackwardParams& p;
  i64 row;
};
template <NormRowBackwardConfig C, class F> QN_DEVICE void each_columns(const ReadColumns<C>& mine, const F& f) {
  each_access<C>(mine.p.hidden, [&](i64 h) { f(h, read_columns<C>(mine.p, mine.row, h)); });
}

/// Rows too long for registers, and unaligned ones: the row is read for each pass, and dw and dbias grow in the block's part. All sums have
/// the order of backward_held.
template <NormRowBackwardConfig C> QN_DEVICE void backward_reread(const NormRowBackwardParams& p, f32* scratch) {
  using T = dtype_t<C.dtype>;
  f32* const part = part_of_block<C>(p);
  for (i64 row = blockIdx.x; row < p.tokens; row += gridDim.x) {
    const bool first = row == i64(blockIdx.x);
    const RowFactors factors = factors_of<C>(p, scratch, ReadColumns<C>{p, row}, [] {});
    each_access<C>(p.hidden, [&](i64 h) {
      const Columns<C.vector> v = read_columns<C>(p, row, h);
      f32 dx[C.vector], dw[C.vector] = {}, dbias[C.vector] = {};
      if constexpr (C.with_dw != 0) load_part<C>(part + h, first, dw);
      if constexpr (C.with_dbias != 0) load_part<C>(part + p.dbias_part + h, first, dbias);
      QN_UNROLL
      for (int j = 0; j < C.vector; ++j) dx[j] = element<C>(v.dy[j], v.x[j], v.g[j], factors, dw[j], dbias[j]);
      f32 more[C.vector] = {};
      if constexpr (C.add_gradient != 0) load_f32<T, C.vector>(static_cast<const T*>(p.dresidual) + row * p.dresidual_stride + h, more);
      scale_and_add<C>(factors.scale, more, dx);
      store_f32<T, C.vector>(static_cast<T*>(p.dx) + row * p.dx_stride + h, dx);
      if constexpr (C.with_dw != 0) store_part<C>(part + h, dw);
      if constexpr (C.with_dbias != 0) store_part<C>(part + p.dbias_part + h, dbias);
    });
  }
}

template <NormRowBackwardConfig C> QN_DEVICE void norm_row_backward(const NormRowBackwardParams& p) {
  constexpr auto S = norm_row_backward_smem(C);
  QN_SMEM(smem);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  if constexpr (C.held > 0) backward_held<C>(p, reinterpret_cast<f32*>(smem + S.reduce), reinterpret_cast<f32*>(smem + S.sums));
  else backward_reread<C>(p, reinterpret_cast<f32*>(smem + S.reduce));
}

}  // namespace quern::norm
