// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// f32 in host memory for tests that call an op by hand.
#pragma once
#include <initializer_list>
#include <vector>

#include "quern/op/schema.h"

namespace quern::testing {

/// All of v in that shape, without gaps.
inline TensorView view(std::vector<float>& v, std::initializer_list<i64> shape) { return TensorView(v.data(), DType::f32, shape); }
/// n multiples of 1/16 from -3.125 to 3.125, in an order that `seed` shifts.
inline std::vector<float> some(i64 n, int seed) {
  std::vector<float> v(static_cast<size_t>(n));
  for (i64 i = 0; i < n; ++i) v[size_t(i)] = float((i * 37 + seed * 11) % 101 - 50) / 16;
  return v;
}

}  // namespace quern::testing
