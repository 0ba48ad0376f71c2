// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/activation/activate_row_backward/slopes_ref.h"
#include "quern/ops/activation/clamped_swiglu_backward.h"

namespace quern::activation {

template <class Real = double>
void clamped_swiglu_backward_ref(const ClampedSwigluBackwardArgs& a, const ClampedSwigluBackwardArgs& magnitudes) {
  using std::abs;
  const Ref<Real> dy(a.dy), x(a.x);
  const RefOut<Real> dx(a.dx), size(magnitudes.dx);
  const i64 n = a.dy.shape[1];
  const Real limit = Real(a.limit), beta = Real(a.beta);
  for (i64 t = 0; t < dy.dim(0); ++t)
    for (i64 i = 0; i < n; ++i) {
      const i64 gate_at = a.interleaved ? 2 * i : i, up_at = a.interleaved ? 2 * i + 1 : n + i;
      const Real gate = x(t, gate_at), up = x(t, up_at), g = smaller_ref(gate, limit), u = larger_ref(smaller_ref(up, limit), -limit),
                 d = dy(t, i);
      const SlopeTerm<Real> at = sigmoid_slope_ref(g, Real(a.alpha));
      dx.set(limit < gate ? Real(0) : d * (u + beta) * at.slope, t, gate_at), size.set(abs(d) * (abs(u) + abs(beta)), t, gate_at);
      dx.set(limit < abs(up) ? Real(0) : d * at.value, t, up_at), size.set(abs(d * g), t, up_at);
    }
}

}  // namespace quern::activation
