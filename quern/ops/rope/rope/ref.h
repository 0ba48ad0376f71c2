// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/rope/rope.h"
#include "quern/ops/rope/rotate/angles_ref.h"

namespace quern::rope {

inline void rope_ref(const RopeArgs& a, const RopeArgs& magnitudes) {
  const TensorView from[2] = {a.q, a.k}, to[2] = {a.q_out, a.k_out}, sizes[2] = {magnitudes.q_out, magnitudes.k_out};
  for (int which = 0; which < 2; ++which) {
    const Ref x(from[which]);
    const RefOut out(to[which]), size(sizes[which]);
    for (i64 t = 0; t < x.dim(0); ++t) {
      for (i64 h = 0; h < x.dim(1); ++h)
        for (i64 d = rotary_dim_ref(a, x.dim(2)); d < x.dim(2); ++d) out.set(x(t, h, d), t, h, d);
      each_pair_ref(a, t, x.dim(2), [&](i64 first, i64 second, const RotationRef& r) {
        for (i64 h = 0; h < x.dim(1); ++h) {
          const double u = x(t, h, first), v = x(t, h, second);
          out.set(u * r.cosine - v * r.sine, t, h, first);
          out.set(v * r.cosine + u * r.sine, t, h, second);
          size.set(std::abs(u) * r.cosine_size + std::abs(v) * r.sine_size, t, h, first);
          size.set(std::abs(v) * r.cosine_size + std::abs(u) * r.sine_size, t, h, second);
        }
      });
    }
  }
}

}  // namespace quern::rope
