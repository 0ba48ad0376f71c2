// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[row, i] = probs[row, i] / sum of the survivors, 0 of those that are none
// A team of blocks takes a row at a time: the passes of its filters (sample/kernel.cuh), one for the sum and one for the result.
#pragma once
#include "quern/ops/sampling/filters/survivors.cuh"
#include "quern/ops/sampling/renorm/spec.h"

namespace quern::sampling {

template <RenormConfig C> QN_DEVICE void renorm_of(Team<C.layout.row>& team, const RenormParams& p, i64 index) {
  constexpr FilterLayout L = C.layout;
  const Row<L.row> row = row_of(team, static_cast<const dtype_t<L.row.dtype>*>(p.probs) + index * p.stride, p.vocab);
  f32* out = reinterpret_cast<f32*>(p.out) + index * p.out_stride;
  const Filter filter = filter_of(p.filter, index);
  const RowFacts facts = facts_of<L>(team, row);
  if (!facts.valid || !is_valid(filter)) {
    const f32 nan = value_of_key(0);
    return write_row<f32, C.store>(row, out, [&](i32, f32) { return nan; });
  }
  const Survivors<L> s = survivors_of<L>(team, row, filter, facts);
  const RoundedTotal total = rounded_total(team_total(team, mass_of_thread(row, [&](i32 i, f32 x) { return surviving_mass(s, i, x); })));
  write_row<f32, C.store>(
      row, out, [&](i32 i, f32 x) { return survives(s, i, x) ? share_of_total(weight_of(s.weights, x), s.weights.top, total) : f32(0.f); });
}

template <RenormConfig C> QN_DEVICE void renorm_row(const RenormParams& p) {
  QN_SMEM(smem);
  constexpr RowLayout kRow = C.layout.row;
  Team<kRow> team = team_of<kRow>(smem);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  for (i64 row = team_index<kRow>(); row < p.rows; row += team_count<kRow>()) {
    renorm_of<C>(team, p, row);
    sync_team<kRow>();  // others may still read what this block shows
  }
}

}  // namespace quern::sampling
