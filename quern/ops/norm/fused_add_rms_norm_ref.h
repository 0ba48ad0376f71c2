// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "quern/op/ref.h"
#include "quern/ops/norm/fused_add_rms_norm.h"

namespace quern::norm {

/// One row of y to e4m3, a scale for each 128 elements; `terms` are the absolute terms of y.
template <class Real>
void group_scales_ref(const std::vector<Real>& y, const std::vector<Real>& terms, i64 t, const FusedAddRmsNormArgs& a, const FusedAddRmsNormArgs& magnitudes) {
  using std::abs;
  const RefOut<Real> out(a.out), scales(a.scales), out_magnitude(magnitudes.out), scales_magnitude(magnitudes.scales);
  const i64 hidden = i64(y.size());
  for (i64 begin = 0; begin < hidden; begin += 128) {
    const i64 end = std::min<i64>(begin + 128, hidden);
    Real amax = Real(double(1e-4f)), most = amax;
    for (i64 h = begin; h < end; ++h) {
      if (most < terms[size_t(h)]) most = terms[size_t(h)];
      const Real magnitude = abs(y[size_t(h)]);
      if (amax == amax && (magnitude != magnitude || amax < magnitude)) amax = magnitude;
    }
    const Real scale = amax / Real(448.0);
    scales.set(scale, t, begin / 128);
    scales_magnitude.set(most / Real(448.0), t, begin / 128);
    for (i64 h = begin; h < end; ++h) {
      out.set(y[size_t(h)] * (Real(1) / scale), t, h);
      out_magnitude.set(terms[size_t(h)] / scale, t, h);
    }
  }
}

template <class Real = double>
void fused_add_rms_norm_ref(const FusedAddRmsNormArgs& a, const FusedAddRmsNormArgs& magnitudes) {
  using std::abs, std::sqrt;
  const Ref<Real> x(a.x), weight(a.weight);
  RefOut<Real> out(a.out), residual(a.residual), residual_magnitude(magnitudes.residual), out_magnitude(magnitudes.out);
  const i64 hidden = x.dim(1);
  std::vector<Real> sum(static_cast<size_t>(hidden)), terms = sum, y = sum;
  for (i64 t = 0; t < x.dim(0); ++t) {
    Real squares = 0;
    for (i64 h = 0; h < hidden; ++h) {
      const Real before = residual.get(t, h);
      sum[size_t(h)] = before + x(t, h);
      squares += sum[size_t(h)] * sum[size_t(h)];
      residual.set(sum[size_t(h)], t, h);
      residual_magnitude.set(abs(before) + abs(x(t, h)), t, h);
    }
    const Real scale = Real(1) / sqrt(squares / Real(double(hidden)) + Real(a.eps));
    for (i64 h = 0; h < hidden; ++h) {
      const Real before = sum[size_t(h)] - x(t, h);
      y[size_t(h)] = sum[size_t(h)] * scale * weight(h);
      terms[size_t(h)] = (abs(before) + abs(x(t, h))) * scale * abs(weight(h));
    }
    if (a.scales.present()) group_scales_ref(y, terms, t, a, magnitudes);
    for (i64 h = 0; h < hidden && !a.scales.present(); ++h) {
      out.set(y[size_t(h)], t, h);
      out_magnitude.set(terms[size_t(h)], t, h);
    }
  }
}

}  // namespace quern::norm
