// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/activation/activate_row_backward/slopes_ref.h"
#include "quern/ops/activation/swiglu_backward.h"

namespace quern::activation {

template <class Real = double>
void swiglu_backward_ref(const SwigluBackwardArgs& a, const SwigluBackwardArgs& magnitudes) {
  const auto same = [](i64 i) { return i; };
  backward_gated_ref<Real>(a, a.gate, a.dgate, magnitudes.dgate, magnitudes, [](Real x) { return silu_slope_ref(x); }, same, same);
}

}  // namespace quern::activation
