// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/quant/per_token.h"
#include "quern/ops/quant/values/rounding_ref.h"

namespace quern::quant {

template <class Real = double>
void per_token_ref(const PerTokenArgs& a, const PerTokenArgs&, const PerTokenArgs& given) {
  const Ref<Real> x(a.x), bound(a.scale_upper_bound);
  RefOut<Real> q(a.q), scales(a.scales);
  for (i64 i = 0; i < x.dim(0); ++i) {
    const Span row{i, i + 1, 0, x.dim(1)};
    Real amax = amax_of(x, row);
    if (bound.present() && bound(0) < amax) amax = bound(0);
    const Real scale = scale_of(amax, given.q.dtype, false, a.amax_floor);
    scales.set(scale, i, 0);
    quantise(x, q, row, scale, given.q.dtype);
  }
}

}  // namespace quern::quant
