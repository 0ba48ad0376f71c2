// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/sampling/filters/filter_ref.h"
#include "quern/ops/sampling/mask.h"

namespace quern::sampling {

inline void mask_ref(const MaskArgs& a, const MaskArgs&) {
  const Ref<> logits(a.logits);
  const RefOut<> out(a.out);
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (i64 row = 0; row < logits.dim(0); ++row) {
    const std::vector<double> x = logits.row({row});
    const FilterRef f = filter_ref(a, row);
    const SurvivorsRef s = survivors_ref(x, f);
    const bool parameters = f.temperature >= 0 && !std::isinf(f.temperature) && !std::isnan(f.top_p) && !std::isnan(f.min_p);
    const bool nothing = parameters && std::all_of(x.begin(), x.end(), [&](double v) { return v == -inf; });
    for (i64 i = 0; i < logits.dim(1); ++i) out.set(s.valid ? (s.survives[size_t(i)] ? x[size_t(i)] : -inf) : nothing ? -inf : nan, row, i);
  }
}

}  // namespace quern::sampling
