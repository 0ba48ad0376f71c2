// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/rope/rope_inplace.h"
#include "quern/ops/rope/rotate/angles_ref.h"

namespace quern::rope {

inline void rope_inplace_ref(const RopeInplaceArgs& a, const RopeInplaceArgs& magnitudes) {
  const TensorView views[2] = {a.q, a.k}, sizes[2] = {magnitudes.q, magnitudes.k};
  for (int which = 0; which < 2; ++which) {
    RefOut x(views[which]), size(sizes[which]);
    for (i64 t = 0; t < x.dim(0); ++t)
      each_pair_ref(a, t, x.dim(2), [&](i64 first, i64 second, const RotationRef& r) {
        for (i64 h = 0; h < x.dim(1); ++h) {
          const double u = x.get(t, h, first), v = x.get(t, h, second);
          x.set(u * r.cosine - v * r.sine, t, h, first);
          x.set(v * r.cosine + u * r.sine, t, h, second);
          size.set(std::abs(u) + std::abs(v), t, h, first);
          size.set(std::abs(u) + std::abs(v), t, h, second);
        }
      });
  }
}

}  // namespace quern::rope
