// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "quern/op/ref.h"
#include "quern/ops/topk/select.h"

namespace quern::topk {

/// Indices of the k largest of x, sorted by value or by index; at most as many as x has.
inline std::vector<i64> largest_ref(const std::vector<double>& x, i64 k, bool sorted) {
  std::vector<i64> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](i64 a, i64 b) {
    const double u = x[size_t(a)], v = x[size_t(b)];
    return std::isnan(u) ? false : std::isnan(v) ? true : u > v;
  });
  order.resize(std::min(order.size(), size_t(k)));
  if (!sorted) std::sort(order.begin(), order.end());
  return order;
}

/// The elements of a row as its length and start say, cut to what there is.
template <class Args>
std::vector<double> ragged_row_ref(const Args& a, i64 row) {
  std::vector<double> x = Ref(a.x).row({row});
  const i64 columns = i64(x.size()), start = a.row_starts.present() ? Ref(a.row_starts).index(row) : 0, begin = std::clamp<i64>(start, 0, columns);
  const i64 length = a.lengths.present() ? Ref(a.lengths).index(row) : columns - start;
  return {x.begin() + begin, x.begin() + begin + std::clamp<i64>(length, 0, columns - begin)};
}

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
