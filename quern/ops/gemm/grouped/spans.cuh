// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// spans[g] = the first row of group g and the first behind it, from group_of_row
// One block. Groups begin at multiples of the alignment, so of so many rows only the first is looked at, and the last ones of a group,
// by halves. A group that begins twice has its first part: begins and ends ascend together, the smallest of both belong together.
#pragma once
#include "quern/kit/kit.cuh"
#include "quern/ops/gemm/grouped/spec.h"

namespace quern::gemm {

/// The first row behind those of `group` among the rows (row, end), of which they come first.
QN_DEVICE i32 end_of_group(const i32* group_of_row, i32 group, i32 row, i32 end) {
  while (end - row > 1) {
    const i32 middle = row + (end - row) / 2;
    if (ptx::ld_global<i32>(group_of_row + middle) == group) row = middle;
    else end = middle;
  }
  return end;
}

template <GroupedSpansConfig C>
QN_DEVICE void grouped_spans(const GroupedSpansParams& p) {
  const i32* const group_of_row = static_cast<const i32*>(p.group_of_row);
  i32* const spans = static_cast<i32*>(p.spans);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  for (i32 i = i32(threadIdx.x); i < 2 * p.groups; i += C.threads) ptx::st_global<i32>(spans + i, p.m);  // no rows
  ptx::sync_block();
  for (i64 row = i64(threadIdx.x) * p.alignment; row < p.m; row += i64(C.threads) * p.alignment) {
    const i32 group = ptx::ld_global<i32>(group_of_row + row);
    if (group < 0 || group >= p.groups) continue;
    const i64 next = row + p.alignment;
    if (row == 0 || ptx::ld_global<i32>(group_of_row + row - p.alignment) != group) ptx::atomic_min(spans + 2 * group, i32(row));
    if (next >= p.m || ptx::ld_global<i32>(group_of_row + next) != group)
      ptx::atomic_min(spans + 2 * group + 1, end_of_group(group_of_row, group, i32(row), i32(min_of<i64>(next, p.m))));
  }
}

}  // namespace quern::gemm
