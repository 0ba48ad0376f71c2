// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cmath>
#include <vector>

#include "quern/op/ref.h"
#include "quern/ops/gemm/dense.h"

namespace quern::gemm {

inline void dense_ref(const DenseArgs& args, const DenseArgs& magnitudes) {
  const Ref a(args.a), b(args.b), bias(args.bias);
  const RefOut out(args.out), mag(magnitudes.out);
  const i64 m = a.dim(0), n = b.dim(0), k = a.dim(1);
  std::vector<double> rows_of_a(size_t(m * k)), row(static_cast<size_t>(k));
  for (i64 i = 0; i < m; ++i)
    if (k > 0) a.row({i}, rows_of_a.data() + i * k);
  for (i64 j = 0; j < n; ++j) {
    if (k > 0) b.row({j}, row.data());
    const double added = bias.present() ? bias(j) : 0;
    for (i64 i = 0; i < m; ++i) {
      double sum = added, terms = std::fabs(added);
      for (i64 x = 0; x < k; ++x) {
        const double term = rows_of_a[size_t(i * k + x)] * row[size_t(x)];
        sum += term;
        terms += std::fabs(term);
      }
      out.set(sum, i, j);
      mag.set(terms, i, j);
    }
  }
}

}  // namespace quern::gemm
