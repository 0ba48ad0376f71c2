// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/quant/per_token_group.h"
#include "quern/ops/quant/values/rounding_ref.h"

namespace quern::quant {

template <class Real = double>
void per_token_group_ref(const PerTokenGroupArgs& a, const PerTokenGroupArgs&, const PerTokenGroupArgs& given) {
  const Ref<Real> x(a.x);
  RefOut<Real> q(a.q), scales(a.scales);
  const bool e8m0 = given.scales.dtype == DType::u8;
  for (i64 i = 0; i < x.dim(0); ++i)
    for (i64 begin = 0; begin < x.dim(1); begin += a.group_size) {
      const Span group{i, i + 1, begin, std::min<i64>(begin + a.group_size, x.dim(1))};
      const Real scale = scale_of(amax_of(x, group), given.q.dtype, a.power_of_two || e8m0, a.amax_floor);
      scales.set(e8m0 ? exponent_byte(scale) : scale, i, begin / a.group_size);
      quantise(x, q, group, scale, given.q.dtype);
    }
}

}  // namespace quern::quant
