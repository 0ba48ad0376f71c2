// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/activation/activate_row_backward/slopes_ref.h"
#include "quern/ops/activation/silu_and_mul_backward.h"

namespace quern::activation {

template <class Real = double>
void silu_and_mul_backward_ref(const SiluAndMulBackwardArgs& a, const SiluAndMulBackwardArgs& magnitudes) {
  backward_halves_ref<Real>(a, magnitudes, [](Real x) { return silu_slope_ref(x); });
}

}  // namespace quern::activation
