// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/sampling/filters/filter_ref.h"
#include "quern/ops/sampling/renorm.h"

namespace quern::sampling {

inline void renorm_ref(const RenormArgs& a, const RenormArgs&) {
  const Ref<> probs(a.probs);
  const RefOut<> out(a.out);
  for (i64 row = 0; row < probs.dim(0); ++row) {
    const std::vector<double> shares = shares_ref(survivors_ref(probs.row({row}), filter_ref(a, row)));
    for (i64 i = 0; i < probs.dim(1); ++i) out.set(shares[size_t(i)], row, i);
  }
}

}  // namespace quern::sampling
