// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/activation/activate_row_backward/slopes_ref.h"
#include "quern/ops/activation/relu2_backward.h"

namespace quern::activation {

template <class Real = double>
void relu2_backward_ref(const Relu2BackwardArgs& a, const Relu2BackwardArgs& magnitudes) {
  backward_alone_ref<Real>(a, magnitudes, [](Real x) { return relu2_slope_ref(x); });
}

}  // namespace quern::activation
