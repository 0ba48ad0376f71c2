// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <algorithm>

#include "quern/ops/quant/per_block.h"
#include "quern/ops/quant/values/rounding_ref.h"

namespace quern::quant {

template <class Real = double>
void per_block_ref(const PerBlockArgs& a, const PerBlockArgs&, const PerBlockArgs& given) {
  using std::abs;
  const Ref<Real> x(a.x);
  RefOut<Real> q(a.q), scales(a.scales);
  for (i64 top = 0; top < x.dim(0); top += 128)
    for (i64 left = 0; left < x.dim(1); left += 128) {
      const i64 bottom = std::min<i64>(top + 128, x.dim(0)), right = std::min<i64>(left + 128, x.dim(1));
      Real amax = 0;
      for (i64 i = top; i < bottom; ++i)
        for (i64 j = left; j < right; ++j) amax = larger(amax, Real(abs(x(i, j))));
      const Real scale = scale_of(amax, given.q.dtype, a.power_of_two), inverse = rounded(Real(1) / scale);
      scales.set(scale, top / 128, left / 128);
      for (i64 i = top; i < bottom; ++i)
        for (i64 j = left; j < right; ++j) q.set(rounded_to(rounded(x(i, j) * inverse), given.q.dtype), i, j);
    }
}

}  // namespace quern::quant
