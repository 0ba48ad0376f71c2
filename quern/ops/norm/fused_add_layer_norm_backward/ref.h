// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/norm/fused_add_layer_norm_backward.h"
#include "quern/ops/norm/norm_row_backward/gradients_ref.h"

namespace quern::norm {

template <class Real = double>
void fused_add_layer_norm_backward_ref(const FusedAddLayerNormBackwardArgs& a, const FusedAddLayerNormBackwardArgs& magnitudes) {
  const Ref<Real> weight(a.weight);
  norm_backward_ref<Real>(a, magnitudes, a.residual, a.dresidual, a.dbias, magnitudes.dbias, true,
                          [&](i64 h) { return weight.present() ? weight(h) : Real(1); });
}

}  // namespace quern::norm
