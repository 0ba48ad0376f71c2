// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Where the exact prefix sum of masses of a row passes a number.
#pragma once
#include "quern/bricks/mass/mass.cuh"
#include "quern/bricks/select/row.cuh"

namespace quern {

/// The sum of measure(index, value), a Mass, of the thread's elements of the row.
template <RowLayout L, class Measure> QN_DEVICE U128 mass_of_thread(const Row<L>& row, Measure measure) {
  constexpr int kAccesses = kMassesOfSum / L.vector;
  U128 total{0, 0};
  MassSum sum{0, 0};
  int left = kAccesses;
  each_access(row, [&](const Elements<L>& e) {
    each_of(e, [&](i32 index, f32 x) { add(sum, measure(index, x)); });
    if (--left == 0) total = total + wide(sum), sum = {0, 0}, left = kAccesses;
  });
  return total + wide(sum);
}
/// Calls f(index, value) with the elements of a thread alone; `begin` is that of an access.
template <RowLayout L, class F> QN_DEVICE void each_between(const Row<L>& row, i32 begin, i32 end, F f) {
  QN_NO_UNROLL
  for (i32 at = begin; at < end; at += L.vector) each_of_slowly(load_elements(row, at, end), f);
}

/// The element of a row at which the prefix sum of measure(index, value), a Mass, passes target(sum of all), in order of the index. Of the
/// team only the block whose part has it gets it; in the others, and where there is none, index is row.length. `total` is everyone's. No
/// block reads another's memory behind it. The row is read once, and a segment of it again.
template <RowLayout L, class Measure, class Target> QN_DEVICE Found find_in_row(Team<L>& team, const Row<L>& row, Measure measure,
                                                                                Target target) {
  constexpr u32 kWarps = L.threads / 32;
  const U128 of_warp = warp_prefix_sum(mass_of_thread(row, measure));
  if (ptx::lane_id() == 31) slots_of(team)[threadIdx.x / 32] = of_warp;
  const U128* const shown = show_slots(team);
  const Found of_segment = find_above(team, L.blocks * kWarps, [&](u32 i) { return read_of<L>(i / kWarps, shown + i % kWarps); }, target);
  if constexpr (L.blocks > 1) sync_team<L>();  // what follows is a block's own: others need not wait for it before they exit
  const Found nothing{of_segment.before, {0, 0}, of_segment.total, u32(row.length), {}};
  if (of_segment.index / kWarps != team.rank) return nothing;  // none: behind the last block
  const U128 wanted = target(of_segment.total) - of_segment.before;

  const Span s = segment_of(row, i32(of_segment.index % kWarps));
  const i32 share = round_up<i32>(ceil_div<i32>(s.end - s.begin, L.threads), L.vector),
            begin = min_of(s.begin + i32(threadIdx.x) * share, s.end), end = min_of(begin + share, s.end);
  MassSum mine{0, 0};
  each_between(row, begin, end, [&](i32 index, f32 x) { add(mine, measure(index, x)); });
  const U128 all_mine = wide(mine);
  const BlockSums sums = block_sums(team, all_mine);
  if (sums.before <= wanted && wanted < sums.before + all_mine) {
    U128 before = sums.before;
    each_between(row, begin, end, [&](i32 index, f32 x) {
      const U128 e = wide(measure(index, x)), upto = before + e;
      if (before <= wanted && wanted < upto) *found_of(team) = {of_segment.before + before, e, of_segment.total, u32(index), {}};
      before = upto;
    });
  }
  ptx::sync_block();
  return *found_of(team);
}

/// What a block that has it tells the team: every block gets the smallest of the blocks' numbers.
template <RowLayout L> QN_DEVICE u32 smallest_of_team(Team<L>& team, u32 mine) {
  if constexpr (L.blocks == 1) return mine;
  if (threadIdx.x == 0) slots_of(team)->low = mine;
  const U128* const shown = show_slots(team);
  u64 least = ~u64(0);
  QN_NO_UNROLL
  for (u32 rank = 0; rank < L.blocks; ++rank) least = min_of(least, read_of<L>(rank, &shown->low));
  return u32(least);
}

}  // namespace quern
