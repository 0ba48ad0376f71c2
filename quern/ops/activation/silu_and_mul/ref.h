// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/activation/activate_row/functions_ref.h"
#include "quern/ops/activation/silu_and_mul.h"

namespace quern::activation {

template <class Real = double>
void silu_and_mul_ref(const SiluAndMulArgs& a, const SiluAndMulArgs& magnitudes) {
  using std::abs;
  const Ref<Real> x(a.x);
  const i64 n = a.out.shape[1];
  activate_row_ref<Real>(a, magnitudes, [&](i64 t, i64 i) -> Term<Real> {
    const Real y = silu_ref(x(t, i)) * x(t, n + i);
    return {y, abs(x(t, i) * x(t, n + i))};
  });
}

}  // namespace quern::activation
