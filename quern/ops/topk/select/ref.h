// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <limits>
#include <vector>

#include "quern/ops/topk/select.h"
#include "quern/ops/topk/select_row/rows_ref.h"

namespace quern::topk {

inline void select_ref(const SelectArgs& a, const SelectArgs&) {
  const RefOut<> indices(a.indices), values(a.values);
  for (i64 row = 0; row < indices.dim(0); ++row) {
    const std::vector<double> x = ragged_row_ref(a, row);
    const std::vector<i64> kept = largest_ref(x, a.k, a.sorted);
    for (i64 i = 0; i < indices.dim(1); ++i) {
      const bool any = size_t(i) < kept.size();
      indices.set(any ? double(kept[size_t(i)]) : -1, row, i);
      values.set(any ? x[size_t(kept[size_t(i)])] : -std::numeric_limits<double>::infinity(), row, i);
    }
  }
}

}  // namespace quern::topk
