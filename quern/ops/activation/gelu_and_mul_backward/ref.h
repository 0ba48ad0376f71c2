// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/activation/activate_row_backward/slopes_ref.h"
#include "quern/ops/activation/gelu_and_mul_backward.h"

namespace quern::activation {

template <class Real = double>
void gelu_and_mul_backward_ref(const GeluAndMulBackwardArgs& a, const GeluAndMulBackwardArgs& magnitudes) {
  backward_halves_ref<Real>(a, magnitudes, [](Real x) { return gelu_slope_ref(x); });
}

}  // namespace quern::activation
