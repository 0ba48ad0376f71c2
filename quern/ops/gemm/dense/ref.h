// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cmath>
#include <vector>

#include "quern/op/ref.h"
#include "quern/ops/gemm/dense.h"

namespace quern::gemm {

inline double gelu_ref(double x) { return x * std::erfc(-x / std::sqrt(2.0)) / 2; }
/// As the kernels have it: order-free numbers know no erf.
inline OrderFree gelu_ref(OrderFree x) {
  const OrderFree size = fabs(x), last = kGeluLast, y = last < size ? last : size;
  OrderFree log2_tail = 0, power = 1;
  for (int i = 0; i < kGeluTerms; ++i, power *= y) log2_tail += OrderFree(gelu_tail(i)) * power;
  return (x < OrderFree(0) ? OrderFree(0) : x) - y * exp2(log2_tail);
}

template <class Real>
Real activated_ref(Activation activation, Real x) {
  using std::exp;
  switch (activation) {
    case Activation::none: return x;
    case Activation::relu: return x < Real(0) ? Real(0) : x;
    case Activation::gelu: return gelu_ref(x);
    case Activation::silu: return x / (Real(1) + exp(-x));
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
