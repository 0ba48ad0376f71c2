// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cmath>
#include <vector>

#include "quern/op/ref.h"
#include "quern/ops/gemm/scaled.h"

namespace quern::gemm {

template <class Real = double>
void scaled_ref(const ScaledArgs& args, const ScaledArgs& magnitudes) {
  using std::fabs;
  const Ref<Real> a(args.a), b(args.b), scales_a(args.scales_a), scales_b(args.scales_b), bias(args.bias), c(args.c);
  const RefOut<Real> out(args.out), mag(magnitudes.out);
  const i64 m = a.dim(0), n = b.dim(0), k = a.dim(1);
  const auto scale_a = [&](i64 i, i64 x) { return scales_a(scales_a.dim(0) == m ? i : 0, scales_a.dim(1) == 1 ? 0 : x / 128); };
  const auto scale_b = [&](i64 j, i64 x) {
    return scales_b(scales_b.dim(0) == n ? j : scales_b.dim(0) == 1 ? 0 : j / 128, scales_b.dim(1) == 1 ? 0 : x / 128);
  };
  std::vector<Real> rows_of_a(size_t(m * k)), row(static_cast<size_t>(k));
  for (i64 i = 0; i < m; ++i) {
    if (k > 0) a.row({i}, rows_of_a.data() + i * k);
    for (i64 x = 0; x < k; ++x) rows_of_a[size_t(i * k + x)] = rows_of_a[size_t(i * k + x)] * scale_a(i, x);
  }
  for (i64 j = 0; j < n; ++j) {
    if (k > 0) b.row({j}, row.data());
    for (i64 x = 0; x < k; ++x) row[size_t(x)] = row[size_t(x)] * scale_b(j, x);
    const Real added = bias.present() ? bias(j) : Real(0);
    for (i64 i = 0; i < m; ++i) {
      const Real old = c.present() ? c(i, j) : Real(0);
      Real sum = added + old, terms = fabs(added) + fabs(old);
      for (i64 x = 0; x < k; ++x) {
        const Real term = rows_of_a[size_t(i * k + x)] * row[size_t(x)];
        sum += term;
        terms += fabs(term);
      }
      out.set(sum, i, j);
      mag.set(terms, i, j);
    }
  }
}

}  // namespace quern::gemm
