// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/activation/activate_row/functions_ref.h"
#include "quern/ops/activation/gelu_tanh.h"

namespace quern::activation {

template <class Real = double>
void gelu_tanh_ref(const GeluTanhArgs& a, const GeluTanhArgs& magnitudes) {
  using std::abs;
  const Ref<Real> x(a.x);
  activate_row_ref<Real>(a, magnitudes, [&](i64 t, i64 i) -> Term<Real> { return {gelu_tanh_ref(x(t, i)), abs(x(t, i))}; });
}

}  // namespace quern::activation
