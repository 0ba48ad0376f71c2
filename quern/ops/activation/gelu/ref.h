// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/activation/activate_row/functions_ref.h"
#include "quern/ops/activation/gelu.h"

namespace quern::activation {

template <class Real = double>
void gelu_ref(const GeluArgs& a, const GeluArgs& magnitudes) {
  using std::abs;
  const Ref<Real> x(a.x);
  activate_row_ref<Real>(a, magnitudes, [&](i64 t, i64 i) -> Term<Real> { return {gelu_ref(x(t, i)), abs(x(t, i))}; });
}

}  // namespace quern::activation
