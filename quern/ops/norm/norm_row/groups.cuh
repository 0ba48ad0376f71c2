// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// norm_row with an out that is e4m3: scales[t, g] = max(max_h |y[t, h]|, amax_floor) / 448 over the 128 elements of group g,
// out = y * (1 / scale)
// Threads own units as in norm_row, so a group is 16 neighbouring lanes (32 of f32), which reduce its maximum by shuffles.
#pragma once
#include "quern/kit/fp8_scale.cuh"
#include "quern/ops/norm/norm_row/kernel.cuh"

namespace quern::norm {

/// The unit at element h of a row: y into out, v into the residual. All lanes of a warp meet here.
template <NormRowConfig C>
QN_DEVICE void write_group_unit(const NormRowGroupsParams& params, i64 row, i64 h, const f32 (&v)[kUnit<C>], f32 scale,
                                const Unit<C>& weight) {
  constexpr int kLanes = kFp8Group / kUnit<C>;
  const NormRowParams& p = params.row;
  using T = dtype_t<C.dtype>;
  // First, as v then takes no registers: behind the rest 28 bytes spill at 64
  if constexpr (C.add_residual != 0) store_unit<C>(static_cast<T*>(p.residual) + row * p.residual_stride, h, p.hidden, v);
  f32 y[kUnit<C>];
  normalise_unit<C>(p, h, v, scale, weight, y);
  f32 amax = 0.f;
  QN_UNROLL
  for (int j = 0; j < kUnit<C>; ++j) amax = ptx::fmax_nan(amax, ptx::fabs(y[j]));  // 0 past the row's end
  const f32 group_scale = fp8_scale<DType::e4m3>(warp_max_nan<kLanes>(amax), false, f32(params.amax_floor)),
            inverse = fp8_inverse(group_scale);
  // Before the elements: behind them 8 bytes spill at 72 registers (hidden 7168), 16 at 64
  if (h < p.hidden && threadIdx.x % kLanes == 0)
    static_cast<f32*>(params.scales)[row * params.scale_strides[0] + i64(u64(h) / kFp8Group) * params.scale_strides[1]] = group_scale;
  QN_UNROLL
  for (int a = 0; a < kAccesses<C>; ++a) {
    f32 part[C.vector];
    QN_UNROLL
    for (int j = 0; j < C.vector; ++j) part[j] = y[a * C.vector + j] * inverse;
    e4m3* to = static_cast<e4m3*>(p.out) + row * p.out_stride + h + a * C.vector;
    if (h + a * C.vector < p.hidden) store_f32<e4m3, C.vector>(to, part);
  }
}

/// Writes a row, of which x and residual are read again.
template <NormRowConfig C> QN_DEVICE void write_group_row(const NormRowGroupsParams& params, i64 row, f32 scale) {
  const NormRowParams& p = params.row;
  for (i64 first = 0; first < p.hidden; first += C.threads * kUnit<C>) {
    const i64 h = first + i64(threadIdx.x) * kUnit<C>;
    f32 v[kUnit<C>];
    QN_UNROLL
    for (int a = 0; a < kAccesses<C>; ++a) {
      f32 part[C.vector];
      if (h + a * C.vector < p.hidden) access_values<C>(p, row, h + a * C.vector, part);
      QN_UNROLL
      for (int j = 0; j < C.vector; ++j) v[a * C.vector + j] = h + a * C.vector < p.hidden ? part[j] : f32(0.f);
    }
    Unit<C> weight;
    load_unit<C>(static_cast<const dtype_t<C.dtype>*>(p.weight), h, p.hidden, weight);
    write_group_unit<C>(params, row, h, v, scale, weight);
  }
}

template <NormRowConfig C> QN_DEVICE void norm_row_groups(const NormRowGroupsParams& p) {
  constexpr auto S = norm_row_smem(C);
  QN_SMEM(smem);
  f32* scratch = reinterpret_cast<f32*>(smem + S.reduce);
  ptx::grid_launch_dependents();
  if constexpr (C.held > 0)
    norm_row_held<C>(p.row, scratch, smem + S.weight, [&](i64 row, i64 h, const f32(&v)[kUnit<C>], f32 scale, const Unit<C>& weight) {
      write_group_unit<C>(p, row, h, v, scale, weight);
    });
  else norm_row_reread<C>(p.row, scratch, [&](i64 row, f32 scale) { write_group_row<C>(p, row, scale); });
}

}  // namespace quern::norm
