// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "quern/op/ref.h"
#include "quern/ops/gemm/grouped_contiguous.h"
#include "quern/ops/gemm/grouped_masked.h"

namespace quern::gemm {

/// The rows [first, second) of a group.
using RowSpan = std::pair<i64, i64>;

/// The rows of each group, from the group of each row. Rows are looked at in stretches of `alignment` rows, and only the first row of a
/// stretch counts. A group has the first stretch that begins with it, and those behind that begin with it too. Its last stretch ends before
/// the first row of another group. A group that begins again later does not get these rows.
inline std::vector<RowSpan> spans_of_rows(const Ref<>& group_of_row, i64 m, i64 groups, i64 alignment) {
  std::vector<RowSpan> spans(size_t(groups), RowSpan(0, 0));
  std::vector<bool> found(size_t(groups), false);
  for (i64 row = 0; row < m;) {
    const i64 group = group_of_row.index(row), first = row;
    i64 last = row;  // the beginning of the last stretch
    while ((row += alignment) < m && group_of_row.index(row) == group) last = row;
    if (group < 0 || group >= groups || found[size_t(group)]) continue;
    i64 end = last;
    while (end < std::min(last + alignment, m) && group_of_row.index(end) == group) ++end;
    found[size_t(group)] = true;
    spans[size_t(group)] = {first, end};
  }
  return spans;
}

/// The rows of each group.
inline std::vector<RowSpan> spans_of(const GroupedContiguousArgs& args) {
  const i64 m = args.a.shape[0], groups = args.b.shape[0];
  if (args.group_of_row.present()) return spans_of_rows(args.group_of_row, m, groups, args.alignment);
  const bool ends = args.group_ends.present();
  const Ref<> bounds(ends ? args.group_ends : args.m_indptr);
  std::vector<RowSpan> spans;
  i64 bound = ends ? 0 : std::clamp<i64>(bounds.index(0), 0, m);
  for (i64 g = 0; g < groups; ++g) {
    const i64 begin = ends ? (bound + args.alignment - 1) / args.alignment * args.alignment : bound;
    bound = std::max(bound, std::clamp<i64>(bounds.index(ends ? g : g + 1), 0, m));
    spans.emplace_back(begin, std::max(begin, bound));
  }
  return spans;
}
inline std::vector<RowSpan> spans_of(const GroupedMaskedArgs& args) {
  const Ref<> masked_m(args.masked_m);
  std::vector<RowSpan> spans;
  for (i64 g = 0; g < args.b.shape[0]; ++g) spans.emplace_back(0, std::clamp<i64>(masked_m.index(g), 0, args.a.shape[1]));
  return spans;
}

/// One group's product: row_of_a(i) is row i of its a, with scale_of_a(i, x) for column x; store(i, j, sum, terms) takes an element.
template <class Real, class Args, class RowOfA, class ScaleOfA, class Store>
void group_ref(const Args& args, i64 group, const RowSpan& rows, const RowOfA& row_of_a, const ScaleOfA& scale_of_a, const Store& store) {
  using std::fabs;
  const Ref<Real> b(args.b), scales_b(args.scales_b);
  const i64 n = b.dim(1), k = b.dim(2), count = rows.second - rows.first;
  std::vector<Real> of_a(size_t(count * k)), of_b(static_cast<size_t>(k));
  for (i64 i = 0; i < count && k > 0; ++i) {
    row_of_a(rows.first + i, of_a.data() + i * k);
    for (i64 x = 0; x < k && scales_b.present(); ++x) of_a[size_t(i * k + x)] = of_a[size_t(i * k + x)] * scale_of_a(rows.first + i, x);
  }
  for (i64 j = 0; j < n; ++j) {
    if (k > 0) b.row({group, j}, of_b.data());
    for (i64 x = 0; x < k && scales_b.present(); ++x) of_b[size_t(x)] = of_b[size_t(x)] * scales_b(group, j / 128, x / 128);
    for (i64 i = 0; i < count; ++i) {
      Real sum = 0, terms = 0;
      for (i64 x = 0; x < k; ++x) {
        const Real term = of_a[size_t(i * k + x)] * of_b[size_t(x)];
        sum += term;
        terms += fabs(term);
      }
      store(rows.first + i, j, sum, terms);
    }
  }
}

template <class Real = double>
void grouped_contiguous_ref(const GroupedContiguousArgs& args, const GroupedContiguousArgs& magnitudes) {
  const Ref<Real> a(args.a), scales_a(args.scales_a);
  const RefOut<Real> out(args.out), mag(magnitudes.out);
  const std::vector<RowSpan> spans = spans_of(args);
  for (size_t g = 0; g < spans.size(); ++g)
    group_ref<Real>(
        args, i64(g), spans[g], [&](i64 i, Real* to) { a.row({i}, to); }, [&](i64 i, i64 x) { return scales_a(i, x / 128); },
        [&](i64 i, i64 j, Real sum, Real terms) { out.set(sum, i, j), mag.set(terms, i, j); });
}

template <class Real = double>
void grouped_masked_ref(const GroupedMaskedArgs& args, const GroupedMaskedArgs& magnitudes) {
  const Ref<Real> a(args.a), scales_a(args.scales_a);
  const RefOut<Real> out(args.out), mag(magnitudes.out);
  const std::vector<RowSpan> spans = spans_of(args);
  for (i64 g = 0; g < i64(spans.size()); ++g)
    group_ref<Real>(
        args, g, spans[size_t(g)], [&](i64 i, Real* to) { a.row({g, i}, to); }, [&](i64 i, i64 x) { return scales_a(g, i, x / 128); },
        [&](i64 i, i64 j, Real sum, Real terms) { out.set(sum, g, i, j), mag.set(terms, g, i, j); });
}

}  // namespace quern::gemm
