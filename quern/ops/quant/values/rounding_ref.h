// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the references of the family share. They state every rounding, so that kernels must have the same bits: a quotient or
// product of two f32, computed in double, is rounded to f32 as if it had been exact.
#pragma once
#include <cmath>

#include "quern/op/ref.h"

namespace quern::quant {

/// To f32 where Real is double; order-free numbers do not round.
inline double rounded(double x) { return double(float(x)); }
inline OrderFree rounded(OrderFree x) { return x; }
/// To a dtype, as it is stored.
inline double rounded_to(double x, DType dtype) {
  u64 bits = 0;
  store_value(&bits, dtype, x);
  return load_value(&bits, dtype);
}
inline OrderFree rounded_to(OrderFree x, DType) { return x; }

/// The power of two that is not below a positive number.
inline double power_of_two_above(double x) {
  if (!std::isfinite(x)) return x;
  double power = 1;
  while (power < x) power *= 2;
  while (power / 2 >= x) power /= 2;
  return power;
}

/// The larger; NaN once one was NaN.
template <class Real>
Real larger(Real a, Real b) {
  if (a != a) return a;
  return b != b || a < b ? b : a;
}

template <class Real>
Real scale_of(Real amax, DType q_dtype, bool power_of_two) {
  const Real scale = rounded(larger(amax, Real(double(1e-4f))) / Real(q_dtype == DType::e4m3 ? 448.0 : 57344.0));
  return power_of_two ? power_of_two_above(scale) : scale;
}

}  // namespace quern::quant
