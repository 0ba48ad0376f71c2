// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/quant/per_tensor.h"
#include "quern/ops/quant/values/rounding_ref.h"

namespace quern::quant {

template <class Real = double>
void per_tensor_ref(const PerTensorArgs& a, const PerTensorArgs&, const PerTensorArgs& given) {
  using std::abs;
  const Ref<Real> x(a.x), static_scale(a.static_scale);
  RefOut<Real> q(a.q), out(a.scale);
  Real amax = 0;
  for (i64 i = 0; i < x.dim(0); ++i)
    for (i64 j = 0; j < x.dim(1); ++j) amax = larger(amax, Real(abs(x(i, j))));
  const Real scale = static_scale.present() ? static_scale(0) : scale_of(amax, given.q.dtype, false);
  const Real inverse = rounded(Real(1) / scale);
  out.set(scale, 0);
  for (i64 i = 0; i < x.dim(0); ++i)
    for (i64 j = 0; j < x.dim(1); ++j) q.set(rounded_to(rounded(x(i, j) * inverse), given.q.dtype), i, j);
}

}  // namespace quern::quant
