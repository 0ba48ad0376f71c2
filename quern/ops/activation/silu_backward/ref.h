// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/activation/activate_row_backward/slopes_ref.h"
#include "quern/ops/activation/silu_backward.h"

namespace quern::activation {

template <class Real = double>
void silu_backward_ref(const SiluBackwardArgs& a, const SiluBackwardArgs& magnitudes) {
  backward_alone_ref<Real>(a, magnitudes, [](Real x) { return silu_slope_ref(x); });
}

}  // namespace quern::activation
