// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Activations by their definitions, for references: those of the family activation and those that the products end with.
#pragma once
#include <cmath>

#include "quern/op/ref.h"

namespace quern {

/// NaN of -infinity, as the kernels' -infinity times 0 is.
template <class Real> Real silu_ref(Real x) {
  using std::exp;
  return x / (Real(1) + exp(-x));
}

/// The limit, -0, of -infinity: the kernels cut |x| before they multiply.
inline double gelu_ref(double x) { return x == -HUGE_VAL ? -0.0 : x * std::erfc(-x / std::sqrt(2.0)) / 2; }
/// As the kernels have it: order-free numbers know no erf.
inline OrderFree gelu_ref(OrderFree x) {
  const OrderFree size = fabs(x), last = kGeluLast, y = last < size ? last : size;
  OrderFree log2_tail = 0, power = 1;
  for (int i = 0; i < kGeluTerms; ++i, power *= y) log2_tail += OrderFree(gelu_tail(i)) * power;
  return (x < OrderFree(0) ? OrderFree(0) : x) - y * exp2(log2_tail);
}

}  // namespace quern
