// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <algorithm>

#include "quern/ops/quant/per_token_group.h"
#include "quern/ops/quant/values/rounding_ref.h"

namespace quern::quant {

template <class Real = double>
void per_token_group_ref(const PerTokenGroupArgs& a, const PerTokenGroupArgs&, const PerTokenGroupArgs& given) {
  using std::abs;
  const Ref<Real> x(a.x);
  RefOut<Real> q(a.q), scales(a.scales);
  for (i64 i = 0; i < x.dim(0); ++i)
    for (i64 begin = 0; begin < x.dim(1); begin += 128) {
      const i64 end = std::min<i64>(begin + 128, x.dim(1));
      Real amax = 0;
      for (i64 j = begin; j < end; ++j) amax = larger(amax, Real(abs(x(i, j))));
      const Real scale = scale_of(amax, given.q.dtype, a.power_of_two), inverse = rounded(Real(1) / scale);
      scales.set(scale, i, begin / 128);
      for (i64 j = begin; j < end; ++j) q.set(rounded_to(rounded(x(i, j) * inverse), given.q.dtype), i, j);
    }
}

}  // namespace quern::quant
