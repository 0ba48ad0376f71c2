// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the references of the family share. They state every rounding.
#pragma once
#include <cmath>

#include "quern/op/rounding_ref.h"

namespace quern::quant {

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
