// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "quern/op/ref.h"
#include "quern/ops/activation/silu_and_mul.h"

namespace quern::activation {

/// y of one row to e4m3, a scale for each 128 columns.
template <class Real>
void silu_and_mul_scales_ref(const std::vector<Real>& y, i64 t, const RefOut<Real>& out, const RefOut<Real>& scales) {
  using std::abs;
  const i64 intermediate = i64(y.size());
  for (i64 begin = 0; begin < intermediate; begin += 128) {
    const i64 end = std::min<i64>(begin + 128, intermediate);
    Real amax = Real(double(1e-4f));
    for (i64 i = begin; i < end; ++i) {
      const Real magnitude = abs(y[size_t(i)]);
      if (magnitude != magnitude || amax < magnitude) amax = magnitude;
      if (amax != amax) break;
    }
    const Real scale = amax / Real(448.0);
    scales.set(scale, t, begin / 128);
    for (i64 i = begin; i < end; ++i) out.set(y[size_t(i)] * (Real(1) / scale), t, i);
  }
}

template <class Real = double>
void silu_and_mul_ref(const SiluAndMulArgs& a, const SiluAndMulArgs&) {
  using std::exp;
  const Ref<Real> x(a.x);
  const RefOut<Real> out(a.out), scales(a.scales);
  const i64 intermediate = out.dim(1);
  std::vector<Real> y(static_cast<size_t>(intermediate));
  for (i64 t = 0; t < out.dim(0); ++t) {
    for (i64 i = 0; i < intermediate; ++i) {
      const Real gate = x(t, i);
      y[size_t(i)] = gate / (Real(1) + exp(-gate)) * x(t, intermediate + i);
    }
    if (scales.present()) silu_and_mul_scales_ref(y, t, out, scales);
    for (i64 i = 0; i < intermediate && !scales.present(); ++i) out.set(y[size_t(i)], t, i);
  }
}

}  // namespace quern::activation
