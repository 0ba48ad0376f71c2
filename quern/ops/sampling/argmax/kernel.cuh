// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[row] = argmax of logits[row], the lowest index of equal ones
// A team of blocks reads a row at a time, eight accesses of a thread in flight.
#pragma once
#include "quern/ops/sampling/argmax/spec.h"
#include "quern/ops/sampling/filters/survivors.cuh"

namespace quern::sampling {

template <ArgmaxConfig C> QN_DEVICE void argmax_row(const ArgmaxParams& p) {
  QN_SMEM(smem);
  constexpr RowLayout kRow = C.layout.row;
  Team<kRow> team = team_of<kRow>(smem);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  for (i64 row = team_index<kRow>(); row < p.rows; row += team_count<kRow>()) {
    const RowFacts facts =
        facts_of<C.layout>(team, row_of(team, static_cast<const dtype_t<kRow.dtype>*>(p.logits) + row * p.stride, p.vocab));
    if (threadIdx.x == 0 && team.rank == 0) {
      p.out[row] = facts.valid ? i32(facts.first) : 0;
      if (p.valid) p.valid[row] = facts.valid;
    }
    sync_team<kRow>();  // others may still read what this block shows
  }
}

}  // namespace quern::sampling
