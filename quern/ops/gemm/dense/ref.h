// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cmath>
#include <vector>

#include "quern/op/activation_ref.h"
#include "quern/op/ref.h"
#include "quern/ops/gemm/dense.h"

namespace quern::gemm {

template <class Real>
Real activated_ref(Activation activation, Real x) {
  switch (activation) {
    case Activation::none: return x;
    case Activation::relu: return x < Real(0) ? Real(0) : x;
    case Activation::gelu: return gelu_ref(x);
    case Activation::silu: return silu_ref(x);
  }
  return x;
}

template <class Real = double>
void dense_ref(const DenseArgs& args, const DenseArgs& magnitudes) {
  using std::fabs;
  const Ref<Real> a(args.a), b(args.b), bias(args.bias), c(args.c);
  const RefOut<Real> out(args.out), mag(magnitudes.out);
  const i64 m = a.dim(0), n = b.dim(0), k = a.dim(1);
  std::vector<Real> rows_of_a(size_t(m * k)), row(static_cast<size_t>(k));
  for (i64 i = 0; i < m; ++i)
    if (k > 0) a.row({i}, rows_of_a.data() + i * k);
  for (i64 j = 0; j < n; ++j) {
    if (k > 0) b.row({j}, row.data());
    const Real added = bias.present() ? bias(j) : Real(0);
    for (i64 i = 0; i < m; ++i) {
      const Real old = c.present() ? c(i, j) : Real(0);
      Real sum = added + old, terms = fabs(added) + fabs(old);
      for (i64 x = 0; x < k; ++x) {
        const Real term = rows_of_a[size_t(i * k + x)] * row[size_t(x)];
        sum += term;
        terms += fabs(term);
      }
      out.set(activated_ref(args.activation, sum), i, j);
      mag.set(terms, i, j);
    }
  }
}

}  // namespace quern::gemm
