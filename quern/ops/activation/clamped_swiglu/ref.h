// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/activation/activate_row/functions_ref.h"
#include "quern/ops/activation/clamped_swiglu.h"

namespace quern::activation {

template <class Real = double>
void clamped_swiglu_ref(const ClampedSwigluArgs& a, const ClampedSwigluArgs& magnitudes) {
  const Ref<Real> x(a.x);
  const i64 n = a.out.shape[1];
  activate_row_ref<Real>(a, magnitudes, [&](i64 t, i64 i) -> Term<Real> {
    const Real gate = x(t, a.interleaved ? 2 * i : i), up = x(t, a.interleaved ? 2 * i + 1 : n + i);
    return clamped_swiglu_ref(gate, up, Real(a.alpha), Real(a.beta), Real(a.limit));
  });
}

}  // namespace quern::activation
