// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/quant/per_block.h"
#include "quern/ops/quant/values/rounding_ref.h"

namespace quern::quant {

template <class Real = double>
void per_block_ref(const PerBlockArgs& a, const PerBlockArgs&, const PerBlockArgs& given) {
  const Ref<Real> x(a.x);
  RefOut<Real> q(a.q), scales(a.scales);
  for (i64 top = 0; top < x.dim(0); top += 128)
    for (i64 left = 0; left < x.dim(1); left += 128) {
      const Span block{top, std::min<i64>(top + 128, x.dim(0)), left, std::min<i64>(left + 128, x.dim(1))};
      const Real scale = scale_of(amax_of(x, block), given.q.dtype, a.power_of_two, a.amax_floor);
      scales.set(scale, top / 128, left / 128);
      quantise(x, q, block, scale, given.q.dtype);
    }
}

}  // namespace quern::quant
