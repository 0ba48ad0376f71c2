// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/sampling/filters/filter_ref.h"
#include "quern/ops/sampling/softmax.h"

namespace quern::sampling {

inline void softmax_ref(const SoftmaxArgs& a, const SoftmaxArgs&) {
  const Ref<> logits(a.logits);
  const RefOut<> out(a.out);
  for (i64 row = 0; row < logits.dim(0); ++row) {
    const std::vector<double> shares = shares_ref(
        survivors_ref(logits.row({row}), {.temperature = a.temperatures.present() ? float(Ref(a.temperatures)(row)) : a.temperature}));
    for (i64 i = 0; i < logits.dim(1); ++i) out.set(shares[size_t(i)], row, i);
  }
}

}  // namespace quern::sampling
