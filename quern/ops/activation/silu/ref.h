// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/activation/activate_row/functions_ref.h"
#include "quern/ops/activation/silu.h"

namespace quern::activation {

template <class Real = double>
void silu_ref(const SiluArgs& a, const SiluArgs& magnitudes) {
  using std::abs;
  const Ref<Real> x(a.x);
  activate_row_ref<Real>(a, magnitudes, [&](i64 t, i64 i) -> Term<Real> {
    const Real y = silu_ref(x(t, i));
    return {y, abs(x(t, i))};
  });
}

}  // namespace quern::activation
