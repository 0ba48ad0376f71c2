// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The rows of these ops and what is kept of them, by sorting.
#pragma once
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "quern/op/ref.h"

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
  const i64 columns = i64(x.size()), start = a.row_starts.present() ? Ref(a.row_starts).index(row) : 0,
            begin = std::clamp<i64>(start, 0, columns);
  const i64 length = a.lengths.present() ? Ref(a.lengths).index(row) : columns - start;
  return {x.begin() + begin, x.begin() + begin + std::clamp<i64>(length, 0, columns - begin)};
}

}  // namespace quern::topk
