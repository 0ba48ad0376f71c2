// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cmath>

#include "quern/op/ref.h"
#include "quern/ops/gemm/linear_rowsum_backward.h"

namespace quern::gemm {

template <class Real = double>
void linear_rowsum_backward_ref(const LinearRowsumBackwardArgs& args, const LinearRowsumBackwardArgs& magnitudes) {
  using std::abs;
  const Ref<Real> dy(args.dy), a(args.a), column_sums(args.column_sums);
  const Ref<Real> b(args.b);
  const RefOut<Real> da(args.da), db(args.db), dbias(args.dbias), da_size(magnitudes.da), db_size(magnitudes.db),
      dbias_size(magnitudes.dbias);
  const i64 m = args.a.shape[0], n = args.b.shape[0], k = args.a.shape[1];
  for (i64 x = 0; x < k && da.present(); ++x) {
    Real sum = 0, size = 0;
    for (i64 j = 0; j < n && !column_sums.present(); ++j) sum += b(j, x), size += abs(b(j, x));
    if (column_sums.present()) sum = column_sums(x), size = abs(sum);
    for (i64 i = 0; i < m; ++i) da.set(dy(i) * sum, i, x), da_size.set(abs(dy(i)) * size, i, x);
  }
  for (i64 x = 0; x < k && db.present(); ++x) {
    Real sum = 0, size = 0;
    for (i64 i = 0; i < m; ++i) sum += dy(i) * a(i, x), size += abs(dy(i) * a(i, x));
    for (i64 j = 0; j < n; ++j) db.set(sum, j, x), db_size.set(size, j, x);
  }
  Real all = 0, all_size = 0;
  for (i64 i = 0; i < m; ++i) all += dy(i), all_size += abs(dy(i));
  for (i64 j = 0; j < n; ++j) dbias.set(all, j), dbias_size.set(all_size, j);
}

}  // namespace quern::gemm
