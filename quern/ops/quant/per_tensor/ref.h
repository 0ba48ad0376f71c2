// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/quant/per_tensor.h"
#include "quern/ops/quant/values/rounding_ref.h"

namespace quern::quant {

template <class Real = double>
void per_tensor_ref(const PerTensorArgs& a, const PerTensorArgs&, const PerTensorArgs& given) {
  const Ref<Real> x(a.x), static_scale(a.static_scale);
  RefOut<Real> q(a.q), out(a.scale);
  const Span all{0, x.dim(0), 0, x.dim(1)};
  const Real scale = static_scale.present() ? static_scale(0) : scale_of(amax_of(x, all), given.q.dtype, false, a.amax_floor);
  out.set(scale, 0);
  quantise(x, q, all, scale, given.q.dtype);
}

}  // namespace quern::quant
