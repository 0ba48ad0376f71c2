// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out = sum_i w_i v_i / sum_i w_i, w_i = base^(lse_i - max lse), out_lse = max lse + log_base(sum_i w_i)
// A warp takes a head of a token at a time, its lanes neighbouring columns. Every lane knows all weights: lse is read twice, once for the
// maximum and once for the sum, and once more for each access of columns, from the L1.
#pragma once
#include "quern/kit/kit.cuh"
#include "quern/kit/softmax.cuh"
#include "quern/ops/attention/merge_states/spec.h"

namespace quern::attention {

/// One row: a head of a token.
struct MergedRow {
  i64 token, head;
};

/// A part's lse; -inf where the part is empty, which inf tells too.
QN_DEVICE f32 lse_or_empty(f32 lse) { return ptx::fabs(lse) == ptx::f32_of_bits(0x7f800000u) ? negative_infinity() : lse; }
template <MergeStatesConfig C>
QN_DEVICE f32 lse_of_part(const MergeStatesParams& p, const MergedRow& row, i32 part) {
  if (part < p.parts)
    return lse_or_empty(ptx::ld_global<f32>(p.lse + part * p.lse_strides[0] + row.token * p.lse_strides[1] + row.head * p.lse_strides[2]));
  return lse_or_empty(ptx::ld_global<f32>(p.lse_other + row.token * p.lse_other_strides[0] + row.head * p.lse_other_strides[1]));
}
/// base^(lse - max). The difference is taken before it becomes one of log2: a product lse * log2(e) of 1000 is off by 4e-5 of the exponent.
template <MergeStatesConfig C>
QN_DEVICE f32 weight_of(f32 lse, f32 max) {
  if constexpr (C.base_e == 0) return softmax_weight(lse, max);
  else return softmax_weight((lse - (max == negative_infinity() ? f32(0.f) : max)) * f32(1.44269504088896341f), f32(0.f));
}
/// max + log_base(sum).
template <MergeStatesConfig C>
QN_DEVICE f32 lse_of_state(const SoftmaxState& state) {
  if constexpr (C.base_e == 0) return softmax_lse(state);
  else return state.sum != f32(0.f) ? ptx::fma(ptx::log2_approx(state.sum), f32(0.693147180559945309f), state.max) : negative_infinity();
}
template <MergeStatesConfig C>
QN_DEVICE const dtype_t<C.dtype>* v_of_part(const MergeStatesParams& p, const MergedRow& row, i32 part) {
  using T = dtype_t<C.dtype>;
  if (part < p.parts) return static_cast<const T*>(p.v) + part * p.v_strides[0] + row.token * p.v_strides[1] + row.head * p.v_strides[2];
  return static_cast<const T*>(p.v_other) + row.token * p.v_other_strides[0] + row.head * p.v_other_strides[1];
}

/// The maximum and the sum of the weights of a row's parts.
template <MergeStatesConfig C>
QN_DEVICE SoftmaxState state_of_row(const MergeStatesParams& p, const MergedRow& row, i32 parts) {
  SoftmaxState state = empty_softmax();
  QN_NO_UNROLL
  for (i32 part = 0; part < parts; ++part) state.max = ptx::fmax(state.max, lse_of_part<C>(p, row, part));
  QN_NO_UNROLL
  for (i32 part = 0; part < parts; ++part) state.sum = state.sum + weight_of<C>(lse_of_part<C>(p, row, part), state.max);
  return state;
}

template <MergeStatesConfig C>
QN_DEVICE void merge_row(const MergeStatesParams& p, const MergedRow& row, i32 parts) {
  using Out = dtype_t<C.out_dtype>;
  const SoftmaxState state = state_of_row<C>(p, row, parts);
  const f32 norm = state.sum != f32(0.f) ? ptx::rcp_approx(state.sum) : f32(0.f);
  Out* const out = static_cast<Out*>(p.out) + row.token * p.out_strides[0] + row.head * p.out_strides[1];
  QN_NO_UNROLL
  for (i32 column = i32(ptx::lane_id()) * C.vector; column < p.head_dim; column += 32 * C.vector) {
    f32 sum[C.vector];
    QN_UNROLL
    for (int i = 0; i < C.vector; ++i) sum[i] = 0.f;
    QN_NO_UNROLL
    for (i32 part = 0; part < parts; ++part) {
      const f32 lse = lse_of_part<C>(p, row, part);
      if (lse == negative_infinity()) continue;
      const f32 weight = weight_of<C>(lse, state.max);
      f32 value[C.vector];
      load_f32<dtype_t<C.dtype>, C.vector>(v_of_part<C>(p, row, part) + column, value);
      QN_UNROLL
      for (int i = 0; i < C.vector; ++i) sum[i] = ptx::fma(weight, value[i], sum[i]);
    }
    QN_UNROLL
    for (int i = 0; i < C.vector; ++i) sum[i] = sum[i] * norm;
    store_f32<Out, C.vector>(out + column, sum);
  }
  if (p.out_lse == nullptr) return;
  ptx::sync_warp();  // out_lse may be lse_other, which the other lanes have read
  if (ptx::lane_id() == 0)
    ptx::st_global<f32>(p.out_lse + row.token * p.out_lse_strides[0] + row.head * p.out_lse_strides[1], lse_of_state<C>(state));
}

template <MergeStatesConfig C>
QN_DEVICE void merge_states_row(const MergeStatesParams& p) {
  constexpr i32 kWarps = C.threads / 32;
  const i32 parts = p.parts + (p.v_other != nullptr ? 1 : 0);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  QN_NO_UNROLL
  for (i64 index = i64(blockIdx.x) * kWarps + ptx::warp_id(); index < p.rows; index += i64(gridDim.x) * kWarps) {
    const MergedRow row{index / p.heads, index % p.heads};
    if (p.mask != nullptr && ptx::ld_global<u8>(p.mask + row.token * p.mask_stride) == 0) continue;
    merge_row<C>(p, row, parts);
  }
}

}  // namespace quern::attention
