// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[row] = argmax of logits[row], the lowest index of equal ones
// A block reads a row at a time, four accesses of a thread in flight.
#pragma once
#include "quern/ops/sampling/argmax/spec.h"
#include "quern/ops/sampling/filters/survivors.cuh"

namespace quern::sampling {

template <ArgmaxConfig C> QN_DEVICE void argmax_row(const ArgmaxParams& p) {
  QN_SMEM(smem);
  const SelectMemory m = select_memory(smem);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  for (i64 row = blockIdx.x; row < p.rows; row += gridDim.x) {
    const RowFacts facts = facts_of<C.layout>(m, Row<C.layout.row>{static_cast<const dtype_t<C.layout.row.dtype>*>(p.logits) + row * p.stride, i32(p.vocab)});
    if (threadIdx.x == 0) {
      p.out[row] = facts.valid ? i32(facts.first) : 0;
      if (p.valid) p.valid[row] = facts.valid;
    }
  }
}

}  // namespace quern::sampling
