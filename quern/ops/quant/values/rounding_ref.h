// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the references of the family share. They state every rounding.
#pragma once
#include <algorithm>
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
Real scale_of(Real amax, DType q_dtype, bool power_of_two, float amax_floor) {
  const double largest = q_dtype == DType::e4m3 ? 448.0 : q_dtype == DType::e5m2 ? 57344.0 : 127.0;
  const Real scale = rounded(larger(amax, Real(double(amax_floor))) / Real(largest));
  return power_of_two ? power_of_two_above(scale) : scale;
}

/// As q stores it: -128 is no value of q.
inline double quantised(double x, DType q_dtype) {
  return q_dtype == DType::i8 ? std::max(rounded_to(x, q_dtype), -127.0) : rounded_to(x, q_dtype);
}
inline OrderFree quantised(OrderFree x, DType) { return x; }

/// The byte of a scale that is a power of two; of others 255.
inline double exponent_byte(double scale) { return std::isfinite(scale) ? std::log2(scale) + 127 : 255; }
inline OrderFree exponent_byte(OrderFree scale) { return scale; }

/// Rows and columns of x that share a scale.
struct Span {
  i64 top, bottom, left, right;
};
template <class Real>
Real amax_of(const Ref<Real>& x, const Span& s) {
  using std::abs;
  Real amax = 0;
  for (i64 i = s.top; i < s.bottom; ++i)
    for (i64 j = s.left; j < s.right; ++j) amax = larger(amax, Real(abs(x(i, j))));
  return amax;
}
template <class Real>
void quantise(const Ref<Real>& x, const RefOut<Real>& q, const Span& s, Real scale, DType q_dtype) {
  const Real inverse = rounded(Real(1) / scale);
  for (i64 i = s.top; i < s.bottom; ++i)
    for (i64 j = s.left; j < s.right; ++j) q.set(quantised(rounded(x(i, j) * inverse), q_dtype), i, j);
}

}  // namespace quern::quant
