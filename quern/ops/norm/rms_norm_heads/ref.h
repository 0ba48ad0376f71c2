// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cmath>

#include "quern/op/ref.h"
#include "quern/ops/norm/rms_norm_heads.h"

namespace quern::norm {

template <class Real = double>
void rms_norm_heads_ref(const RmsNormHeadsArgs& a, const RmsNormHeadsArgs&) {
  using std::sqrt;
  const Ref<Real> x(a.x), weight(a.weight);
  const RefOut<Real> out(a.out);
  for (i64 t = 0; t < x.dim(0); ++t)
    for (i64 h = 0; h < x.dim(1); ++h) {
      Real squares = 0;
      for (i64 d = 0; d < x.dim(2); ++d) squares += x(t, h, d) * x(t, h, d);
      const Real r = Real(1) / sqrt(squares / Real(double(x.dim(2))) + Real(a.eps));
      for (i64 d = 0; d < x.dim(2); ++d) {
        const Real factor = !weight.present() ? Real(1) : a.weight_bias == 0 ? weight(d) : weight(d) + Real(a.weight_bias);
        out.set(x(t, h, d) * r * factor, t, h, d);
      }
    }
}

}  // namespace quern::norm
