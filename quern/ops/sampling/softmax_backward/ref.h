// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cmath>

#include "quern/op/ref.h"
#include "quern/ops/sampling/softmax_backward.h"

namespace quern::sampling {

template <class Real = double>
void softmax_backward_ref(const SoftmaxBackwardArgs& a, const SoftmaxBackwardArgs& magnitudes) {
  using std::abs;
  const Ref<Real> dy(a.dy), y(a.out), temperatures(a.temperatures);
  const RefOut<Real> dlogits(a.dlogits), size(magnitudes.dlogits);
  for (i64 row = 0; row < y.dim(0); ++row) {
    Real dot = 0, terms = 0;
    for (i64 i = 0; i < y.dim(1); ++i) dot += dy(row, i) * y(row, i), terms += abs(dy(row, i) * y(row, i));
    const Real temperature = temperatures.present() ? temperatures(row) : Real(a.temperature);
    const Real inverse = temperature < Real(1e-5f) ? Real(0) : Real(1) / temperature;
    for (i64 i = 0; i < y.dim(1); ++i) {
      dlogits.set(y(row, i) * (dy(row, i) - dot) * inverse, row, i);
      size.set(abs(y(row, i)) * (abs(dy(row, i)) + terms) * inverse, row, i);
    }
  }
}

}  // namespace quern::sampling
