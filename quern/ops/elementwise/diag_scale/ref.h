// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/ref.h"
#include "quern/ops/elementwise/diag_scale.h"

namespace quern::elementwise {

template <class Real = double>
void diag_scale_ref(const DiagScaleArgs& a, const DiagScaleArgs&) {
  const Ref<Real> x(a.x), diagonal(a.diagonal);
  const RefOut<Real> out(a.out);
  for (i64 t = 0; t < x.dim(0); ++t)
    for (i64 h = 0; h < x.dim(1); ++h) out.set(diagonal(t) * x(t, h), t, h);
}

}  // namespace quern::elementwise
