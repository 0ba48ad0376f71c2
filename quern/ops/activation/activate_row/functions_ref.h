// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The functions of the family by their definitions, and the walk of their references.
#pragma once
#include <cmath>
#include <vector>

#include "quern/op/activation_ref.h"
#include "quern/op/fp8_output.h"
#include "quern/op/ref.h"

namespace quern::activation {

/// An element of the result, and what its error is relative to.
template <class Real> struct Term {
  Real value, size;
};

using quern::gelu_ref, quern::silu_ref;

inline double gelu_tanh_ref(double x) {
  const double inner = std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x);
  return x / (1 + std::exp(-2 * inner));
}
/// Constants as the kernels have them, in f32.
inline OrderFree gelu_tanh_ref(OrderFree x) {
  const OrderFree exponent = x * (x * x * OrderFree(-0.1029432395800235f) + OrderFree(-2.302208198144325f));
  return x / (OrderFree(1) + exp2(exponent));
}
template <class Real> Real relu2_ref(Real x) { return x < Real(0) ? Real(0) : x * x; }

/// The smaller; NaN where one is NaN. By the larger of the negatives, whose order is that of the kernels in numbers that have none.
template <class Real> Real smaller_ref(Real a, Real b) {
  if (a != a || b != b) return a != a ? a : b;
  return -(-a < -b ? -b : -a);
}
template <class Real> Real larger_ref(Real a, Real b) {
  if (a != a || b != b) return a != a ? a : b;
  return a < b ? b : a;
}
template <class Real> Term<Real> clamped_swiglu_ref(Real gate, Real up, Real alpha, Real beta, Real limit) {
  using std::abs, std::exp;
  gate = smaller_ref(gate, limit);
  up = larger_ref(smaller_ref(up, limit), -limit);
  return {(up + beta) * (gate / (Real(1) + exp(-(gate * alpha)))), (abs(up) + abs(beta)) * abs(gate)};
}

/// Writes result(t, i), a Term, of every element, or what FP8 makes of it.
template <class Real, class Args, class Result>
void activate_row_ref(const Args& a, const Args& magnitudes, const Result& result) {
  const RefOut<Real> out(a.out), size(magnitudes.out);
  const i64 columns = out.dim(1);
  std::vector<Real> y(static_cast<size_t>(columns)), sizes = y;
  for (i64 t = 0; t < out.dim(0); ++t) {
    for (i64 i = 0; i < columns; ++i) {
      const Term<Real> term = result(t, i);
      y[size_t(i)] = term.value, sizes[size_t(i)] = term.size;
    }
    if (a.scales.present()) {
      fp8_output_ref(y, sizes, t, a, magnitudes);
      continue;
    }
    for (i64 i = 0; i < columns; ++i) out.set(y[size_t(i)], t, i), size.set(sizes[size_t(i)], t, i);
  }
}

}  // namespace quern::activation
