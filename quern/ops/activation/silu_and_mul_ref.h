// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cmath>

#include "quern/op/ref.h"
#include "quern/ops/activation/silu_and_mul.h"

namespace quern::activation {

template <class Real = double>
void silu_and_mul_ref(const SiluAndMulArgs& a, const SiluAndMulArgs&) {
  using std::exp;
  const Ref<Real> x(a.x);
  RefOut<Real> out(a.out);
  const i64 intermediate = out.dim(1);
  for (i64 t = 0; t < out.dim(0); ++t) {
    for (i64 i = 0; i < intermediate; ++i) {
      const Real gate = x(t, i);
      out.set(gate / (Real(1) + exp(-gate)) * x(t, intermediate + i), t, i);
    }
  }
}

}  // namespace quern::activation
