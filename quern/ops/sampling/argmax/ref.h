// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cmath>
#include <limits>

#include "quern/op/ref.h"
#include "quern/ops/sampling/argmax.h"

namespace quern::sampling {

inline void argmax_ref(const ArgmaxArgs& a, const ArgmaxArgs&) {
  const Ref<> logits(a.logits);
  const RefOut<> out(a.out), valid(a.valid);
  for (i64 row = 0; row < logits.dim(0); ++row) {
    bool any_nan = false;
    i64 best = -1;
    for (i64 i = 0; i < logits.dim(1); ++i) {
      const double x = logits(row, i);
      any_nan |= std::isnan(x);
      if (x > (best < 0 ? -std::numeric_limits<double>::infinity() : logits(row, best))) best = i;
    }
    const bool ok = !any_nan && best >= 0;
    out.set(ok ? double(best) : 0, row);
    valid.set(ok, row);
  }
}

}  // namespace quern::sampling
