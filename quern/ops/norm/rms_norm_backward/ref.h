// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cmath>
#include <vector>

#include "quern/op/ref.h"
#include "quern/ops/norm/rms_norm_backward.h"

namespace quern::norm {

template <class Real = double>
void rms_norm_backward_ref(const RmsNormBackwardArgs& a, const RmsNormBackwardArgs& magnitudes) {
  using std::abs, std::sqrt;
  const Ref<Real> dy(a.dy), x(a.x), weight(a.weight);
  RefOut<Real> dx(a.dx), dw(a.dw), dx_magnitude(magnitudes.dx), dw_magnitude(magnitudes.dw);
  const auto factor = [&](i64 h) { return a.weight_bias == 0 ? weight(h) : weight(h) + Real(a.weight_bias); };
  const i64 tokens = x.dim(0), hidden = x.dim(1);
  const Real width = Real(double(hidden));
  std::vector<Real> sum(static_cast<size_t>(hidden), Real(0)), sum_magnitude = sum;
  for (i64 t = 0; t < tokens; ++t) {
    Real squares = 0, dot = 0, dot_magnitude = 0;
    for (i64 h = 0; h < hidden; ++h) {
      const Real term = dy(t, h) * factor(h) * x(t, h);
      squares += x(t, h) * x(t, h);
      dot += term;
      dot_magnitude += abs(term);
    }
    const Real r = Real(1) / sqrt(squares / width + Real(a.eps));
    for (i64 h = 0; h < hidden; ++h) {
      const Real g = dy(t, h) * factor(h), normed = x(t, h) * r;
      dx.set(r * (g - normed * r * dot / width), t, h);
      dx_magnitude.set(r * (abs(g) + abs(normed) * r * dot_magnitude / width), t, h);
      sum[size_t(h)] += dy(t, h) * normed;
      sum_magnitude[size_t(h)] += abs(dy(t, h) * normed);
    }
  }
  for (i64 h = 0; h < hidden; ++h) {
    dw.set(sum[size_t(h)], h);
    dw_magnitude.set(sum_magnitude[size_t(h)], h);
  }
}

}  // namespace quern::norm
