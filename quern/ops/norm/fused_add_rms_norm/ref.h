// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cmath>
#include <vector>

#include "quern/op/ref.h"
#include "quern/ops/norm/fused_add_rms_norm.h"
#include "quern/ops/norm/norm_form/output_ref.h"

namespace quern::norm {

template <class Real = double>
void fused_add_rms_norm_ref(const FusedAddRmsNormArgs& a, const FusedAddRmsNormArgs& magnitudes) {
  using std::abs, std::sqrt;
  const Ref<Real> x(a.x), weight(a.weight);
  const RefOut<Real> residual(a.residual), residual_magnitude(magnitudes.residual);
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
      const Real before = sum[size_t(h)] - x(t, h), factor = a.weight_bias == 0 ? weight(h) : weight(h) + Real(a.weight_bias);
      y[size_t(h)] = sum[size_t(h)] * scale * factor;
      terms[size_t(h)] = (abs(before) + abs(x(t, h))) * scale * abs(factor);
    }
    norm_output_ref(y, terms, t, a, magnitudes);
  }
}

}  // namespace quern::norm
