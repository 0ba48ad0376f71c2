// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[row, i] = logits[row, i] of survivors, -inf of those that are none
// A block takes a row at a time: what its filters read (sample/kernel.cuh), and once for the result.
#pragma once
#include "quern/ops/sampling/filters/survivors.cuh"
#include "quern/ops/sampling/mask/spec.h"

namespace quern::sampling {

template <MaskConfig C> QN_DEVICE void mask_of(const SelectMemory& m, const MaskParams& p, i64 index) {
  constexpr FilterLayout L = C.layout;
  using T = dtype_t<L.row.dtype>;
  const Row<L.row> row{static_cast<const T*>(p.logits) + index * p.stride, p.vocab};
  T* out = static_cast<T*>(p.out) + index * p.out_stride;
  const f32 nothing = value_of_key(kKeyOfNegativeInfinity), nan = value_of_key(0);
  const Filter filter = filter_of(p.filter, index);
  const RowFacts facts = facts_of<L>(m, row);
  if (facts.bad || !is_valid(filter)) return write_row<T, C.store>(row, out, [&](i64, f32) { return nan; });
  if (!facts.valid) return write_row<T, C.store>(row, out, [&](i64, f32) { return nothing; });
  if (filter.temperature < f32(kGreedyTemperature))
    return write_row<T, C.store>(row, out, [&](i64 i, f32 x) { return i == facts.first ? x : nothing; });
  const Survivors<L> s = survivors_of<L>(m, row, filter, facts);
  write_row<T, C.store>(row, out, [&](i64 i, f32 x) { return survives(s, i, x) ? x : nothing; });
}

template <MaskConfig C> QN_DEVICE void mask_row(const MaskParams& p) {
  QN_SMEM(smem);
  const SelectMemory m = select_memory(smem);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  for (i64 row = blockIdx.x; row < p.rows; row += gridDim.x) mask_of<C>(m, p, row);
}

}  // namespace quern::sampling
