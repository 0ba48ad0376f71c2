// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cmath>
#include <vector>

#include "quern/op/ref.h"
#include "quern/ops/norm/fused_add_rms_norm.h"

namespace quern::norm {

inline void fused_add_rms_norm_ref(const FusedAddRmsNormArgs& a, const FusedAddRmsNormArgs& magnitudes) {
  const Ref x(a.x), weight(a.weight);
  RefOut out(a.out), residual(a.residual), residual_magnitude(magnitudes.residual), out_magnitude(magnitudes.out);
  const i64 hidden = x.dim(1);
  std::vector<double> sum(static_cast<size_t>(hidden));
  for (i64 t = 0; t < x.dim(0); ++t) {
    double squares = 0;
    for (i64 h = 0; h < hidden; ++h) {
      const double before = residual.get(t, h);
      sum[size_t(h)] = before + x(t, h);
      squares += sum[size_t(h)] * sum[size_t(h)];
      residual.set(sum[size_t(h)], t, h);
      residual_magnitude.set(std::abs(before) + std::abs(x(t, h)), t, h);
    }
    const double scale = 1 / std::sqrt(squares / double(hidden) + double(a.eps));
    for (i64 h = 0; h < hidden; ++h) {
      const double before = sum[size_t(h)] - x(t, h);
      out.set(sum[size_t(h)] * scale * weight(h), t, h);
      out_magnitude.set((std::abs(before) + std::abs(x(t, h))) * scale * std::abs(weight(h)), t, h);
    }
  }
}

}  // namespace quern::norm
