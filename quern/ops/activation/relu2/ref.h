// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/activation/activate_row/functions_ref.h"
#include "quern/ops/activation/relu2.h"

namespace quern::activation {

template <class Real = double>
void relu2_ref(const Relu2Args& a, const Relu2Args& magnitudes) {
  const Ref<Real> x(a.x);
  activate_row_ref<Real>(a, magnitudes, [&](i64 t, i64 i) -> Term<Real> {
    const Real y = relu2_ref(x(t, i));
    return {y, y};
  });
}

}  // namespace quern::activation
