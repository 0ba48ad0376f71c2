// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cmath>

#include "quern/op/ref.h"
#include "quern/ops/elementwise/add.h"

namespace quern::elementwise {

template <class Real = double>
void add_ref(const AddArgs& a, const AddArgs&) {
  const Ref<Real> x(a.x), y(a.y);
  const RefOut<Real> out(a.out);
  for (i64 t = 0; t < x.dim(0); ++t)
    for (i64 h = 0; h < x.dim(1); ++h) out.set(x(t, h) + y(t, h), t, h);
}

}  // namespace quern::elementwise
