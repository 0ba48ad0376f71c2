// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[row, i] = weight_i / sum of masses, weight_i = 2^(logit_i * log2(e) / temperature)
// A team of blocks takes a row at a time and passes over it three times: for the largest value, for the sum, for the result.
#pragma once
#include "quern/ops/sampling/filters/shares.cuh"
#include "quern/ops/sampling/softmax/spec.h"

namespace quern::sampling {

template <SoftmaxConfig C> QN_DEVICE void softmax_of(Team<C.layout.row>& team, const SoftmaxParams& p, i64 index) {
  constexpr FilterLayout L = C.layout;
  const Row<L.row> row = row_of(team, static_cast<const dtype_t<L.row.dtype>*>(p.logits) + index * p.stride, p.vocab);
  f32* out = reinterpret_cast<f32*>(p.out) + index * p.out_stride;
  const f32 temperature = p.temperatures ? ptx::ld_global<f32>(p.temperatures + index) : f32(p.temperature);
  const RowShares<L> shares = shares_of<L>(team, row, temperature);
  // The state is asked once a row, not once an element
  if (shares.state == ShareState::none) {
    const f32 nan = value_of_key(0);
    return write_row<f32, C.store>(row, out, [&](i32, f32) { return nan; });
  }
  if (shares.state == ShareState::one)
    return write_row<f32, C.store>(row, out, [&](i32 i, f32) { return f32(i == shares.first ? 1.f : 0.f); });
  write_row<f32, C.store>(row, out,
                          [&](i32, f32 x) { return share_of_total(weight_of(shares.weights, x), shares.weights.top, shares.total); });
}

template <SoftmaxConfig C> QN_DEVICE void softmax_row(const SoftmaxParams& p) {
  QN_SMEM(smem);
  constexpr RowLayout kRow = C.layout.row;
  Team<kRow> team = team_of<kRow>(smem);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  for (i64 row = team_index<kRow>(); row < p.rows; row += team_count<kRow>()) {
    softmax_of<C>(team, p, row);
    sync_team<kRow>();  // others may still read what this block shows
  }
}

}  // namespace quern::sampling
