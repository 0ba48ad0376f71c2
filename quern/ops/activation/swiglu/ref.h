// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/activation/activate_row/functions_ref.h"
#include "quern/ops/activation/swiglu.h"

namespace quern::activation {

template <class Real = double>
void swiglu_ref(const SwigluArgs& a, const SwigluArgs& magnitudes) {
  using std::abs;
  const Ref<Real> x(a.x), gate(a.gate);
  activate_row_ref<Real>(a, magnitudes, [&](i64 t, i64 i) -> Term<Real> {
    const Real y = silu_ref(gate(t, i)) * x(t, i);
    return {y, abs(gate(t, i) * x(t, i))};
  });
}

}  // namespace quern::activation
