// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/ref.h"
#include "quern/ops/quant/transform_scales.h"

namespace quern::quant {

template <class Real = double>
void transform_scales_ref(const TransformScalesArgs& a, const TransformScalesArgs&) {
  const Ref<Real> x(a.x);
  RefOut<Real> out(a.out);
  for (i64 i = 0; i < x.dim(0); ++i)
    for (i64 g = 0; g < x.dim(1); ++g) out.set(x(i, g), i, g);
}

}  // namespace quern::quant
