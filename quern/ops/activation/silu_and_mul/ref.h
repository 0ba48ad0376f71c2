// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cmath>
#include <vector>

#include "quern/op/fp8_output.h"
#include "quern/op/ref.h"
#include "quern/ops/activation/silu_and_mul.h"

namespace quern::activation {

template <class Real = double>
void silu_and_mul_ref(const SiluAndMulArgs& a, const SiluAndMulArgs& magnitudes) {
  using std::abs, std::exp;
  const Ref<Real> x(a.x);
  const RefOut<Real> out(a.out);
  const i64 intermediate = out.dim(1);
  std::vector<Real> y(static_cast<size_t>(intermediate)), terms = y;
  for (i64 t = 0; t < out.dim(0); ++t) {
    for (i64 i = 0; i < intermediate; ++i) {
      const Real gate = x(t, i);
      y[size_t(i)] = gate / (Real(1) + exp(-gate)) * x(t, intermediate + i);
      terms[size_t(i)] = abs(y[size_t(i)]);
    }
    if (a.scales.present()) fp8_output_ref(y, terms, t, a, magnitudes);
    for (i64 i = 0; i < intermediate && !a.scales.present(); ++i) out.set(y[size_t(i)], t, i);
  }
}

}  // namespace quern::activation
