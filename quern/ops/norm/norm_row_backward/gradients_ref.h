// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Gradients of rows that are normalised, by the formula: what the references of these ops have in common.
#pragma once
#include <cmath>
#include <vector>

#include "quern/op/ref.h"

namespace quern::norm {

/// n = (x - m) r of each row, m its mean where `centred`, else 0; dx = r (g - mean(g) - n mean(g n)), the mean of g where centred; dw and
/// dbias. `added`, where present, is added to dx. `factor(h)` is the weight.
template <class Real, class Args, class Factor>
void norm_backward_ref(const Args& a, const Args& magnitudes, const TensorView& normed_input, const TensorView& added_gradient,
                       const TensorView& dbias_view, const TensorView& dbias_magnitudes, bool centred, const Factor& factor) {
  using std::abs, std::sqrt;
  const Ref<Real> dy(a.dy), x(normed_input), added(added_gradient);
  const RefOut<Real> dx(a.dx), dw(a.dw), dbias(dbias_view), dx_size(magnitudes.dx), dw_size(magnitudes.dw), dbias_size(dbias_magnitudes);
  const i64 tokens = x.dim(0), hidden = x.dim(1);
  const Real width = Real(double(hidden));
  std::vector<Real> of_weight(static_cast<size_t>(hidden), Real(0)), of_bias = of_weight, weight_terms = of_weight, bias_terms = of_weight;
  for (i64 t = 0; t < tokens; ++t) {
    Real sum = 0, size = 0, level = 0, level_size = 0;
    for (i64 h = 0; h < hidden; ++h) {
      const Real g = dy(t, h) * factor(h);
      sum += x(t, h), size += abs(x(t, h)), level += g, level_size += abs(g);
    }
    const Real mean = centred ? sum / width : Real(0);
    level = centred ? level / width : Real(0), level_size = level_size / width;
    Real squares = 0, dot = 0, dot_size = 0;
    for (i64 h = 0; h < hidden; ++h) {
      const Real d = x(t, h) - mean, g = dy(t, h) * factor(h);
      squares += d * d, dot += g * d, dot_size += abs(g * d);
    }
    const Real r = Real(1) / sqrt(squares / width + Real(a.eps)), slope = r * dot / width, slope_size = r * dot_size / width;
    // What the mean may be off by, in units of 2^-15, moves n by as much times r; its square enters r.
    const Real off = centred ? size / width * r / Real(4) : Real(0), more_off = Real(1) + Real(0x1p-15) * off * off;
    for (i64 h = 0; h < hidden; ++h) {
      const Real g = dy(t, h) * factor(h), n = (x(t, h) - mean) * r;
      const Real more = added.present() ? added(t, h) : Real(0);
      dx.set(r * (g - level - n * slope) + more, t, h);
      const Real first = abs(g) + (centred ? level_size : Real(0)) + abs(n) * slope_size, moved = off * (abs(n) * level_size + slope_size);
      dx_size.set(r * more_off * (first + moved) + abs(more), t, h);
      of_weight[size_t(h)] += dy(t, h) * n, weight_terms[size_t(h)] += abs(dy(t, h)) * (abs(n) * more_off + off);
      of_bias[size_t(h)] += dy(t, h), bias_terms[size_t(h)] += abs(dy(t, h));
    }
  }
  for (i64 h = 0; h < hidden; ++h) {
    dw.set(of_weight[size_t(h)], h), dw_size.set(weight_terms[size_t(h)], h);
    dbias.set(of_bias[size_t(h)], h), dbias_size.set(bias_terms[size_t(h)], h);
  }
}

}  // namespace quern::norm
