// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "quern/op/ref.h"
#include "quern/ops/gemm/k_grouped.h"

namespace quern::gemm {

/// The columns [first, second) of a group.
using ColumnSpan = std::pair<i64, i64>;

inline std::vector<ColumnSpan> columns_of(const KGroupedArgs& args) {
  const i64 k = args.a.shape[1], blocks = (args.alignment + 127) / 128;
  const i64 unit = args.scales_a.present() ? 128 * blocks : args.alignment;
  const auto bound_at = [&](i64 x) { return x >= k ? k : x / unit * unit; };
  std::vector<ColumnSpan> spans;
  if (args.k_sizes.present()) {
    const Ref<> sizes(args.k_sizes);
    i64 sum = 0;
    for (i64 g = 0; g < sizes.dim(0); ++g) {
      const i64 begin = sum;
      sum = std::min(sum + std::clamp<i64>(sizes.index(g), 0, k), k);
      spans.emplace_back(bound_at(begin), bound_at(sum));
    }
    return spans;
  }
  const Ref<> indptr(args.k_indptr);
  i64 bound = std::clamp<i64>(indptr.index(0), 0, k);
  for (i64 g = 0; g + 1 < indptr.dim(0); ++g) {
    const i64 begin = bound;
    bound = std::max(bound, std::clamp<i64>(indptr.index(g + 1), 0, k));
    spans.emplace_back(bound_at(begin), bound_at(bound));
  }
  return spans;
}

/// Row i of an operand's part of a group, scaled.
template <class Real>
void row_of_group(const Ref<Real>& x, const Ref<Real>& scales, bool packed, i64 i, const ColumnSpan& group, Real* to) {
  const i64 rows = x.dim(0), k = x.dim(1), columns = group.second - group.first;
  for (i64 column = 0; column < columns; ++column) {
    const i64 at = rows * group.first + i * columns + column;
    to[column] = packed ? x(at / k, at % k) : x(i, group.first + column);
    if (scales.present()) to[column] = to[column] * scales(i, (group.first + column) / 128);
  }
}

template <class Real = double>
void k_grouped_ref(const KGroupedArgs& args, const KGroupedArgs& magnitudes) {
  using std::fabs;
  const Ref<Real> a(args.a), b(args.b), scales_a(args.scales_a), scales_b(args.scales_b), c(args.c);
  const RefOut<Real> out(args.out), mag(magnitudes.out);
  const i64 m = a.dim(0), n = b.dim(0);
  const std::vector<ColumnSpan> spans = columns_of(args);
  for (i64 g = 0; g < i64(spans.size()); ++g) {
    const ColumnSpan& span = spans[size_t(g)];
    const i64 columns = span.second - span.first;
    std::vector<Real> of_a(size_t(m * columns)), of_b(static_cast<size_t>(columns));
    for (i64 i = 0; i < m; ++i) row_of_group(a, scales_a, args.packed, i, span, of_a.data() + i * columns);
    for (i64 j = 0; j < n; ++j) {
      row_of_group(b, scales_b, args.packed, j, span, of_b.data());
      for (i64 i = 0; i < m; ++i) {
        const Real old = c.present() ? c(g, i, j) : Real(0);
        Real sum = old, terms = fabs(old);
        for (i64 x = 0; x < columns; ++x) {
          const Real term = of_a[size_t(i * columns + x)] * of_b[size_t(x)];
          sum += term;
          terms += fabs(term);
        }
        out.set(sum, g, i, j);
        mag.set(terms, g, i, j);
      }
    }
  }
}

}  // namespace quern::gemm
