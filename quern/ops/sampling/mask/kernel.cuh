// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[row, i] = logits[row, i] of survivors, -inf of those that are none
// A team of blocks takes a row at a time: the passes of its filters (sample/kernel.cuh), and one for the result.
#pragma once
#include "quern/ops/sampling/filters/survivors.cuh"
#include "quern/ops/sampling/mask/spec.h"

namespace quern::sampling {

template <MaskConfig C> QN_DEVICE void mask_of(Team<C.layout.row>& team, const MaskParams& p, i64 index) {
  constexpr FilterLayout L = C.layout;
  using T = dtype_t<L.row.dtype>;
  const Row<L.row> row = row_of(team, static_cast<const T*>(p.logits) + index * p.stride, p.vocab);
  T* out = static_cast<T*>(p.out) + index * p.out_stride;
  const Filter filter = filter_of(p.filter, index);
  const RowFacts facts = facts_of<L>(team, row);
  const bool bad = facts.bad || !is_valid(filter);
  Survivors<L> s{{}, keep_none(), {0, 0, {0, 0}}};
  if (!bad && facts.valid) {
    if (filter.temperature < f32(kGreedyTemperature)) s.kept = {facts.key, facts.first + 1};
    else s = survivors_of<L>(team, row, filter, facts);
  }
  const f32 others = value_of_key(bad ? 0 : kKeyOfNegativeInfinity);
  write_row<T, C.store>(row, out, [&](i32 i, f32 x) { return survives(s, i, x) ? x : others; });
}

template <MaskConfig C> QN_DEVICE void mask_row(const MaskParams& p) {
  QN_SMEM(smem);
  constexpr RowLayout kRow = C.layout.row;
  Team<kRow> team = team_of<kRow>(smem);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  for (i64 row = team_index<kRow>(); row < p.rows; row += team_count<kRow>()) {
    mask_of<C>(team, p, row);
    sync_team<kRow>();  // others may still read what this block shows
  }
}

}  // namespace quern::sampling
