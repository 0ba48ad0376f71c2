// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// For references that state every rounding, so that kernels must have the same bits: a quotient or product of two f32, computed in
// double, is rounded to f32 as if it had been exact.
#pragma once
#include "quern/op/ref.h"

namespace quern {

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

}  // namespace quern
