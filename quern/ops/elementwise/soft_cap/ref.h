// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cmath>

#include "quern/op/ref.h"
#include "quern/ops/elementwise/soft_cap.h"

namespace quern::elementwise {

template <class Real = double>
void soft_cap_ref(const SoftCapArgs& a, const SoftCapArgs&) {
  using std::tanh;
  const Ref<Real> x(a.x);
  const RefOut<Real> out(a.out);
  for (i64 t = 0; t < x.dim(0); ++t)
    for (i64 h = 0; h < x.dim(1); ++h) out.set(Real(a.cap) * tanh(x(t, h) / Real(a.cap)), t, h);
}

}  // namespace quern::elementwise
