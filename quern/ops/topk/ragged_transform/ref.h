// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <vector>

#include "quern/ops/topk/ragged_transform.h"
#include "quern/ops/topk/select_row/rows_ref.h"

namespace quern::topk {

inline void ragged_transform_ref(const RaggedTransformArgs& a, const RaggedTransformArgs&) {
  const Ref<> offsets(a.offsets);
  const RefOut<> out(a.out);
  for (i64 row = 0; row < out.dim(0); ++row) {
    const std::vector<i64> kept = largest_ref(ragged_row_ref(a, row), a.k, false);
    for (i64 i = 0; i < out.dim(1); ++i) {
      const i64 place = size_t(i) < kept.size() ? kept[size_t(i)] + offsets.index(row) : -1;
      out.set(place < 0 || place > 2147483647 ? -1.0 : double(place), row, i);
    }
  }
}

}  // namespace quern::topk
