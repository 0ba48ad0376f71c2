// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/norm/norm_row_backward/gradients_ref.h"
#include "quern/ops/norm/rms_norm_backward.h"

namespace quern::norm {

template <class Real = double>
void rms_norm_backward_ref(const RmsNormBackwardArgs& a, const RmsNormBackwardArgs& magnitudes) {
  const Ref<Real> weight(a.weight);
  norm_backward_ref<Real>(a, magnitudes, a.x, {}, {}, {}, false,
                          [&](i64 h) { return a.weight_bias == 0 ? weight(h) : weight(h) + Real(a.weight_bias); });
}

}  // namespace quern::norm
