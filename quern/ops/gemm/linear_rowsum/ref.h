// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cmath>
#include <vector>

#include "quern/op/ref.h"
#include "quern/ops/gemm/linear_rowsum.h"

namespace quern::gemm {

template <class Real = double>
void linear_rowsum_ref(const LinearRowsumArgs& args, const LinearRowsumArgs& magnitudes) {
  using std::abs;
  const Ref<Real> a(args.a), b(args.b), bias(args.bias);
  const RefOut<Real> out(args.out), column_sums(args.column_sums), out_size(magnitudes.out), sums_size(magnitudes.column_sums);
  const i64 m = a.dim(0), n = b.dim(0), k = a.dim(1);
  std::vector<Real> sums(static_cast<size_t>(k), Real(0)), sizes = sums;
  for (i64 j = 0; j < n; ++j)
    for (i64 x = 0; x < k; ++x) sums[size_t(x)] += b(j, x), sizes[size_t(x)] += abs(b(j, x));
  Real bias_sum = 0, bias_size = 0;
  for (i64 j = 0; j < n && bias.present(); ++j) bias_sum += bias(j), bias_size += abs(bias(j));
  for (i64 x = 0; x < k; ++x) column_sums.set(sums[size_t(x)], x), sums_size.set(sizes[size_t(x)], x);
  for (i64 i = 0; i < m; ++i) {
    Real y = bias_sum, size = bias_size;
    for (i64 x = 0; x < k; ++x) y += a(i, x) * sums[size_t(x)], size += abs(a(i, x)) * sizes[size_t(x)];
    out.set(y, i), out_size.set(size, i);
  }
}

}  // namespace quern::gemm
