// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cmath>
#include <vector>

#include "quern/op/ref.h"
#include "quern/ops/norm/norm_form/output_ref.h"
#include "quern/ops/norm/rms_norm.h"

namespace quern::norm {

template <class Real = double>
void rms_norm_ref(const RmsNormArgs& a, const RmsNormArgs& magnitudes) {
  using std::abs, std::sqrt;
  const Ref<Real> x(a.x), weight(a.weight);
  std::vector<Real> y(size_t(x.dim(1))), terms = y;
  for (i64 t = 0; t < x.dim(0); ++t) {
    Real squares = 0;
    for (i64 h = 0; h < x.dim(1); ++h) squares += x(t, h) * x(t, h);
    const Real scale = Real(1) / sqrt(squares / Real(double(x.dim(1))) + Real(a.eps));
    for (i64 h = 0; h < x.dim(1); ++h) {
      const Real factor = a.weight_bias == 0 ? weight(h) : weight(h) + Real(a.weight_bias);
      y[size_t(h)] = x(t, h) * scale * factor;
      terms[size_t(h)] = abs(y[size_t(h)]);
    }
    norm_output_ref(y, terms, t, a, magnitudes);
  }
}

}  // namespace quern::norm
