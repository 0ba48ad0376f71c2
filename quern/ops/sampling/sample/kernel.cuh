// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[row] = first token whose prefix sum of survivors' masses is above floor(u * total / 2^64)
// A team of blocks takes a row at a time: a pass for the largest value, one for top-k, two for top-p, and one for the masses of the warps'
// segments, of which the one that has the token is passed over again. What a team does not hold it reads again, from the L2.
#pragma once
#include "quern/bricks/random/philox.cuh"
#include "quern/ops/sampling/filters/survivors.cuh"
#include "quern/ops/sampling/sample/spec.h"

namespace quern::sampling {

/// The token of a row: vocab where another block of the team has it, -1 for none. No block reads another's memory behind it.
template <SampleConfig C> QN_DEVICE i64 draw(Team<C.layout.row>& team, const SampleParams& p, i64 row, i64 from) {
  constexpr FilterLayout L = C.layout;
  const Filter filter = filter_of(p.filter, from);
  if (!is_valid(filter)) return -1;
  const Row<L.row> values = row_of(team, static_cast<const dtype_t<L.row.dtype>*>(p.values) + from * p.stride, p.vocab);
  const RowFacts facts = facts_of<L>(team, values);
  const bool greedy = L.kind == RowKind::logits && filter.temperature < f32(kGreedyTemperature);
  if (!facts.valid || greedy) {
    sync_team<L.row>();
    return !facts.valid ? -1 : team.rank == 0 ? i64(facts.first) : p.vocab;
  }
  const Survivors<L> survivors = survivors_of<L>(team, values, filter, facts);
  const u64 seed = u64(p.seeds ? ptx::ld_global<i64>(p.seeds + row) : p.seed),
            offset = u64(p.offsets ? ptx::ld_global<i64>(p.offsets + row) : p.offset);
  const u64 bits = random_bits(seed, offset, p.seeds ? 0 : u32(row), RandomStream::sample);
  const Found found = find_in_row(
      team, values, [&](i32 index, f32 x) { return surviving_mass(survivors, index, x); },
      [&](U128 total) { return scaled_by_bits(bits, total); });
  return found.index;
}

template <SampleConfig C> QN_DEVICE void sample_row(const SampleParams& p) {
  QN_SMEM(smem);
  Team<C.layout.row> team = team_of<C.layout.row>(smem);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  for (i64 row = team_index<C.layout.row>(); row < p.rows; row += team_count<C.layout.row>()) {
    const i64 from = p.indices ? i64(ptx::ld_global<i32>(p.indices + row)) : row;
    const i64 token = from >= 0 && from < p.logits_rows ? draw<C>(team, p, row, from) : -1;
    if (threadIdx.x == 0 && token < p.vocab && (token >= 0 || team.rank == 0)) {
      p.out[row] = token < 0 ? 0 : i32(token);
      if (p.valid) p.valid[row] = token >= 0;
    }
  }
}

}  // namespace quern::sampling
