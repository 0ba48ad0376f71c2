// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cmath>

#include "quern/op/ref.h"
#include "quern/ops/elementwise/diag_scale_backward.h"

namespace quern::elementwise {

template <class Real = double>
void diag_scale_backward_ref(const DiagScaleBackwardArgs& a, const DiagScaleBackwardArgs& magnitudes) {
  using std::abs;
  const Ref<Real> dy(a.dy), x(a.x), diagonal(a.diagonal);
  const RefOut<Real> dx(a.dx), ddiagonal(a.ddiagonal), size(magnitudes.ddiagonal);
  for (i64 t = 0; t < x.dim(0); ++t) {
    Real sum = 0, terms = 0;
    for (i64 h = 0; h < x.dim(1); ++h) {
      dx.set(diagonal(t) * dy(t, h), t, h);
      sum += dy(t, h) * x(t, h), terms += abs(dy(t, h) * x(t, h));
    }
    ddiagonal.set(sum, t), size.set(terms, t);
  }
}

}  // namespace quern::elementwise
