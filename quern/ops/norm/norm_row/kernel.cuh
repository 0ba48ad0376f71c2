// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[t, h] = s[t, h] / sqrt(mean_h(s[t]^2) + eps) * weight[h], s = x (+ residual)
// A row belongs to row_threads threads, each of which owns units of 16 bytes; a block walks over rows with the stride of the
// grid and asks for its next row before it reduces the current one, so that loads are always in flight. The sum of squares is
// a fixed tree over units and threads: it depends on dtype and hidden alone, not on alignment or on other rows. Each
// thread asks for its units of the weight while the kernel before ends: into registers, or shared memory where registers are few.
#pragma once
#include "quern/ops/norm/norm_row/spec.h"
#include "quern/ops/norm/norm_row/unit.cuh"

namespace quern::norm {

template <NormRowConfig C> QN_DEVICE f32 add_squares(f32 sum, const f32 (&v)[kUnit<C>]) {
  QN_UNROLL
  for (int j = 0; j < kUnit<C>; ++j) sum = ptx::fma(v[j], v[j], sum);
  return sum;
}

/// Starts the copies of the thread's units of the weight.
template <NormRowConfig C> QN_DEVICE void stage_weight(const NormRowParams& p, u8* weight) {
  static_assert(C.vector == kUnit<C>);
  QN_UNROLL
  for (int i = 0; i < C.held; ++i) {
    const i64 unit = i * C.threads + i64(threadIdx.x);
    if (unit * kUnit<C> < p.hidden)
      ptx::cp_async_cg(ptx::smem_address(weight + 16 * unit), static_cast<const u8*>(p.weight) + 16 * unit, 16);
  }
  ptx::cp_async_commit();
}

/// The weight of a row that is held: in shared memory where a block has a row, else the thread's units in registers.
template <NormRowConfig C> struct HeldWeight {
  u8* staged;
  Unit<C> units[stages_weight(C) ? 1 : C.held];
};

/// Asks for the thread's units of the weight.
template <NormRowConfig C> QN_DEVICE void load_weight(const NormRowParams& p, int lane, HeldWeight<C>& weight) {
  if constexpr (stages_weight(C)) {
    stage_weight<C>(p, weight.staged);
  } else {
    QN_UNROLL
    for (int i = 0; i < C.held; ++i)
      load_unit<C>(static_cast<const dtype_t<C.dtype>*>(p.weight), i64(i * C.row_threads + lane) * kUnit<C>, p.hidden, weight.units[i]);
  }
}

/// Unit i of the thread, which is at element h of the row.
template <NormRowConfig C> QN_DEVICE Unit<C> weight_unit(const NormRowParams& p, int i, i64 h, const HeldWeight<C>& weight) {
  if constexpr (stages_weight(C)) {
    Unit<C> unit;
    if (h < p.hidden) unit.access[0] = {ptx::ld_shared<u32x4>(weight.staged + h * size_of(C.dtype))};
    return unit;
  } else {
    return weight.units[i];
  }
}

/// y = v * scale * weight of the unit at element h of a row.
template <NormRowConfig C>
QN_DEVICE void normalise_unit(const NormRowParams& p, i64 h, const f32 (&v)[kUnit<C>], f32 scale, const Unit<C>& of_weight,
                              f32 (&y)[kUnit<C>]) {
  f32 weight[kUnit<C>];
  unit_values<C>(of_weight, h, p.hidden, weight);
  QN_UNROLL
  for (int j = 0; j < kUnit<C>; ++j) y[j] = v[j] * scale * weight[j];
}

/// The same into out, and v into the residual.
template <NormRowConfig C>
QN_DEVICE void write_unit(const NormRowParams& p, i64 row, i64 h, const f32 (&v)[kUnit<C>], f32 scale, const Unit<C>& weight) {
  using T = dtype_t<C.dtype>;
  f32 y[kUnit<C>];
  normalise_unit<C>(p, h, v, scale, weight, y);
  store_unit<C>(static_cast<T*>(p.out) + row * p.out_stride, h, p.hidden, y);
  if constexpr (C.add_residual != 0) store_unit<C>(static_cast<T*>(p.residual) + row * p.residual_stride, h, p.hidden, v);
}

/// x (+ residual) of a unit.
template <NormRowConfig C>
QN_DEVICE void sum_values(const Unit<C>& x, const Unit<C>& residual, i64 h, i64 hidden, f32 (&v)[kUnit<C>]) {
  unit_values<C>(x, h, hidden, v);
  if constexpr (C.add_residual != 0) {
    f32 r[kUnit<C>];
    unit_values<C>(residual, h, hidden, r);
    QN_UNROLL
    for (int j = 0; j < kUnit<C>; ++j) v[j] = v[j] + r[j];
  }
}

/// The row's scale from its threads' sums of squares.
template <NormRowConfig C> QN_DEVICE f32 row_scale(const NormRowParams& p, f32 squares, f32* scratch) {
  f32 sum;
  if constexpr (C.row_threads == 32) sum = warp_sum(squares);
  else sum = block_sum<C.threads>(squares, scratch);
  return ptx::rsqrt_approx(ptx::div(sum, f32(float(p.hidden))) + f32(p.eps));
}

/// What a thread holds of one row.
template <NormRowConfig C> struct HeldRow {
  Unit<C> x[C.held];
  Unit<C> residual[C.add_residual != 0 ? C.held : 1];
};

template <NormRowConfig C> QN_DEVICE void load_row(const NormRowParams& p, i64 row, int lane, HeldRow<C>& held) {
  using T = dtype_t<C.dtype>;
  QN_UNROLL
  for (int i = 0; i < C.held; ++i) {
    const i64 h = i64(i * C.row_threads + lane) * kUnit<C>;
    load_unit<C>(static_cast<const T*>(p.x) + row * p.x_stride, h, p.hidden, held.x[i]);
    if constexpr (C.add_residual != 0)
      load_unit<C>(static_cast<const T*>(p.residual) + row * p.residual_stride, h, p.hidden, held.residual[i]);
  }
}

/// Calls write(row, h, values, scale, unit of the weight) for each unit of the thread, also for those past the row's end.
template <NormRowConfig C, class Write>
QN_DEVICE void norm_row_held(const NormRowParams& p, f32* scratch, u8* staged, Write write) {
  constexpr int kRows = C.threads / C.row_threads;
  const int lane = threadIdx.x % C.row_threads;
  const i64 step = i64(gridDim.x) * kRows;
  i64 row = i64(blockIdx.x) * kRows + threadIdx.x / C.row_threads;
  HeldWeight<C> weight{staged, {}};
  load_weight<C>(p, lane, weight);
  ptx::grid_dependency_wait();
  HeldRow<C> held;
  if (row < p.tokens) load_row<C>(p, row, lane, held);
  for (int slot = 0; row < p.tokens; row += step, slot ^= 1) {
    // Values of this row, then at once the loads of the next
    f32 values[C.held][kUnit<C>];
    f32 squares = 0.f;
    QN_UNROLL
    for (int i = 0; i < C.held; ++i) {
      const i64 h = i64(i * C.row_threads + lane) * kUnit<C>;
      sum_values<C>(held.x[i], held.residual[C.add_residual != 0 ? i : 0], h, p.hidden, values[i]);
      squares = add_squares<C>(squares, values[i]);
    }
    if (row + step < p.tokens) load_row<C>(p, row + step, lane, held);
    // Chosen, not multiplied: of 1024 threads 24 bytes would spill with FP8 outputs
    const f32 scale = row_scale<C>(p, squares, scratch + (slot != 0 ? C.threads / 32 : 0));
    if constexpr (stages_weight(C)) ptx::cp_async_wait<0>();  // a thread reads what it has copied itself
    QN_UNROLL
    for (int i = 0; i < C.held; ++i) {
      const i64 h = i64(i * C.row_threads + lane) * kUnit<C>;
      write(row, h, values[i], scale, weight_unit<C>(p, i, h, weight));
    }
  }
}

/// x (+ residual) of one access of a row.
template <NormRowConfig C> QN_DEVICE void access_values(const NormRowParams& p, i64 row, i64 h, f32 (&v)[C.vector]) {
  using T = dtype_t<C.dtype>;
  load_f32<T, C.vector>(static_cast<const T*>(p.x) + row * p.x_stride + h, v);
  if constexpr (C.add_residual != 0) {
    f32 r[C.vector];
    load_f32<T, C.vector>(static_cast<const T*>(p.residual) + row * p.residual_stride + h, r);
    QN_UNROLL
    for (int j = 0; j < C.vector; ++j) v[j] = v[j] + r[j];
  }
}

/// Writes a row, of which x and residual are read again.
template <NormRowConfig C> QN_DEVICE void write_row(const NormRowParams& p, i64 row, f32 scale) {
  using T = dtype_t<C.dtype>;
  each_access<C>(p.hidden, [&](i64 h) {
    f32 v[C.vector], weight[C.vector], y[C.vector];
    access_values<C>(p, row, h, v);
    load_f32<T, C.vector>(static_cast<const T*>(p.weight) + h, weight);
    QN_UNROLL
    for (int j = 0; j < C.vector; ++j) y[j] = v[j] * scale * weight[j];
    store_f32<T, C.vector>(static_cast<T*>(p.out) + row * p.out_stride + h, y);
    if constexpr (C.add_residual != 0) store_f32<T, C.vector>(static_cast<T*>(p.residual) + row * p.residual_stride + h, v);
  });
}

/// Rows too long for registers, and unaligned ones: the row is read twice, the second time by write(row, scale). The sum has the
/// order of norm_row_held.
template <NormRowConfig C, class Write> QN_DEVICE void norm_row_reread(const NormRowParams& p, f32* scratch, Write write) {
  ptx::grid_dependency_wait();
  int slot = 0;
  for (i64 row = blockIdx.x; row < p.tokens; row += gridDim.x, slot ^= 1) {
    f32 squares = 0.f;
    each_access<C>(p.hidden, [&](i64 h) {
      f32 v[C.vector];
      access_values<C>(p, row, h, v);
      QN_UNROLL
      for (int j = 0; j < C.vector; ++j) squares = ptx::fma(v[j], v[j], squares);
    });
    write(row, row_scale<C>(p, squares, scratch + slot * (C.threads / 32)));
  }
}

template <NormRowConfig C> QN_DEVICE void norm_row(const NormRowParams& p) {
  constexpr auto S = norm_row_smem(C);
  QN_SMEM(smem);
  f32* scratch = reinterpret_cast<f32*>(smem + S.reduce);
  ptx::grid_launch_dependents();
  if constexpr (C.held > 0)
    norm_row_held<C>(p, scratch, smem + S.weight, [&](i64 row, i64 h, const f32(&v)[kUnit<C>], f32 scale, const Unit<C>& weight) {
      write_unit<C>(p, row, h, v, scale, weight);
    });
  else norm_row_reread<C>(p, scratch, [&](i64 row, f32 scale) { write_row<C>(p, row, scale); });
}

}  // namespace quern::norm
