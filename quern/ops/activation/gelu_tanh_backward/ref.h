// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/activation/activate_row_backward/slopes_ref.h"
#include "quern/ops/activation/gelu_tanh_backward.h"

namespace quern::activation {

template <class Real = double>
void gelu_tanh_backward_ref(const GeluTanhBackwardArgs& a, const GeluTanhBackwardArgs& magnitudes) {
  backward_alone_ref<Real>(a, magnitudes, [](Real x) { return gelu_tanh_slope_ref(x); });
}

}  // namespace quern::activation
