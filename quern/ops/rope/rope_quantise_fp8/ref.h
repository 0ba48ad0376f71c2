// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/rounding_ref.h"
#include "quern/ops/rope/rope_quantise_fp8.h"
#include "quern/ops/rope/rotate/angles_ref.h"

namespace quern::rope {

inline void quantised_heads_ref(const RopeQuantiseFp8Args& a, const TensorView& rope, const TensorView& nope, const TensorView& scale,
                                const TensorView& rope_out, const TensorView& nope_out, const TensorView& sizes, DType dtype) {
  const Ref x(rope), rest(nope), by(scale);
  const RefOut out(rope_out), rest_out(nope_out), size(sizes);
  const double inverse = by.present() ? rounded(1 / by(0)) : 1;
  for (i64 t = 0; t < x.dim(0); ++t) {
    for (i64 h = 0; h < x.dim(1); ++h)
      for (i64 d = rotary_dim_ref(a, x.dim(2)); d < x.dim(2); ++d) out.set(x(t, h, d) * inverse, t, h, d);
    each_pair_ref(a, t, x.dim(2), [&](i64 first, i64 second, const RotationRef& r) {
      for (i64 h = 0; h < x.dim(1); ++h) {
        const double u = x(t, h, first), v = x(t, h, second);
        out.set((u * r.cosine - v * r.sine) * inverse, t, h, first);
        out.set((v * r.cosine + u * r.sine) * inverse, t, h, second);
        size.set((std::abs(u) * r.cosine_size + std::abs(v) * r.sine_size) * inverse, t, h, first);
        size.set((std::abs(v) * r.cosine_size + std::abs(u) * r.sine_size) * inverse, t, h, second);
      }
    });
    for (i64 h = 0; rest.present() && h < rest.dim(1); ++h)
      for (i64 d = 0; d < rest.dim(2); ++d) rest_out.set(rounded_to(rounded(rest(t, h, d) * inverse), dtype), t, h, d);
  }
}

inline void rope_quantise_fp8_ref(const RopeQuantiseFp8Args& a, const RopeQuantiseFp8Args& magnitudes, const RopeQuantiseFp8Args& given) {
  quantised_heads_ref(a, a.q_rope, a.q_nope, a.q_scale, a.q_rope_out, a.q_nope_out, magnitudes.q_rope_out, given.q_rope_out.dtype);
  quantised_heads_ref(a, a.k_rope, a.k_nope, a.k_scale, a.k_rope_out, a.k_nope_out, magnitudes.k_rope_out, given.q_rope_out.dtype);
}

}  // namespace quern::rope
