// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <vector>

#include "quern/ops/topk/page_table_transform.h"
#include "quern/ops/topk/select_row/rows_ref.h"

namespace quern::topk {

/// Slot of the token that a row calls `index`; -1: it has none.
inline i64 slot_ref(const PageTableTransformArgs& a, i64 row, i64 index) {
  const Ref<> table(a.page_table);
  const i64 request = a.row_to_batch.present() ? Ref(a.row_to_batch).index(row) : row;
  const i64 first = a.page_table_row_starts.present() ? Ref(a.page_table_row_starts).index(row) : 0, column = first + index / a.page_size;
  if (request < 0 || request >= table.dim(0) || first < 0 || column >= table.dim(1)) return -1;
  const i64 page = table.index(request, column), slot = page * a.page_size + index % a.page_size;
  return page < 0 || slot > 2147483647 ? -1 : slot;
}

inline void page_table_transform_ref(const PageTableTransformArgs& a, const PageTableTransformArgs&) {
  const RefOut<> out(a.out), indices(a.indices);
  for (i64 row = 0; row < out.dim(0); ++row) {
    const std::vector<i64> kept = largest_ref(ragged_row_ref(a, row), a.k, false);
    for (i64 i = 0; i < out.dim(1); ++i) {
      const i64 index = size_t(i) < kept.size() ? kept[size_t(i)] : -1;
      out.set(index < 0 ? -1.0 : double(slot_ref(a, row, index)), row, i);
      indices.set(double(index), row, i);
    }
  }
}

}  // namespace quern::topk
