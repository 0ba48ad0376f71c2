// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cmath>
#include <vector>

#include "quern/op/ref.h"
#include "quern/ops/norm/layer_norm.h"
#include "quern/ops/norm/norm_form/output_ref.h"

namespace quern::norm {

template <class Real = double>
void layer_norm_ref(const LayerNormArgs& a, const LayerNormArgs& magnitudes) {
  using std::abs, std::sqrt;
  const Ref<Real> x(a.x), weight(a.weight), bias(a.bias);
  const i64 hidden = x.dim(1);
  const Real width = Real(double(hidden));
  std::vector<Real> s(static_cast<size_t>(hidden)), size = s, y = s, terms = s;
  for (i64 t = 0; t < x.dim(0); ++t) {
    Real sum = 0, sizes = 0, squares = 0;
    for (i64 h = 0; h < hidden; ++h) {
      s[size_t(h)] = x(t, h), size[size_t(h)] = abs(x(t, h));
      sum += s[size_t(h)], sizes += size[size_t(h)];
    }
    const Real mean = sum / width;
    for (i64 h = 0; h < hidden; ++h) squares += (s[size_t(h)] - mean) * (s[size_t(h)] - mean);
    const Real r = Real(1) / sqrt(squares / width + Real(a.eps));
    for (i64 h = 0; h < hidden; ++h) {
      const Real factor = weight.present() ? weight(h) : Real(1), added = bias.present() ? bias(h) : Real(0);
      y[size_t(h)] = (s[size_t(h)] - mean) * r * factor + added;
      terms[size_t(h)] = (size[size_t(h)] + sizes / width) * r * abs(factor) + abs(added);
    }
    norm_output_ref(y, terms, t, a, magnitudes);
  }
}

}  // namespace quern::norm
