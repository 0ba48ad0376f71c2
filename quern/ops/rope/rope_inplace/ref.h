// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cmath>

#include "quern/op/ref.h"
#include "quern/ops/rope/rope_inplace.h"

namespace quern::rope {

/// Angle per position of pair i, in double, by the textbook formula.
inline double rope_ref_frequency(const RopeInplaceArgs& a, i64 i, i64 rotary_dim) {
  const double pi = std::acos(-1.0);
  double f = std::pow(double(a.theta), -2.0 * double(i) / double(rotary_dim)) / double(a.scale);
  if (a.llama31_factor == 1.f) return f;
  const double wavelength = 2 * pi / f;
  const double low = double(a.original_max) / double(a.low_freq_factor), high = double(a.original_max) / double(a.high_freq_factor);
  if (wavelength > low) return f / double(a.llama31_factor);
  if (wavelength < high) return f;
  const double smooth = (double(a.original_max) / wavelength - double(a.low_freq_factor)) /
                        (double(a.high_freq_factor) - double(a.low_freq_factor));
  return (1 - smooth) * f / double(a.llama31_factor) + smooth * f;
}

inline void rope_inplace_ref(const RopeInplaceArgs& a, const RopeInplaceArgs& magnitudes) {
  const Ref positions(a.positions);
  const i64 rotary_dim = a.rotary_dim ? a.rotary_dim : a.q.shape[2];
  const TensorView views[2] = {a.q, a.k}, sizes[2] = {magnitudes.q, magnitudes.k};
  for (int which = 0; which < 2; ++which) {
    RefOut x(views[which]), size(sizes[which]);
    for (i64 t = 0; t < x.dim(0); ++t)
      for (i64 h = 0; h < x.dim(1); ++h)
        for (i64 i = 0; i < rotary_dim / 2; ++i) {
          const i64 first = a.interleaved ? 2 * i : i, second = a.interleaved ? 2 * i + 1 : i + rotary_dim / 2;
          const double angle = positions(t) * rope_ref_frequency(a, i, rotary_dim);
          const double u = x.get(t, h, first), v = x.get(t, h, second);
          x.set(u * std::cos(angle) - v * std::sin(angle), t, h, first);
          x.set(v * std::cos(angle) + u * std::sin(angle), t, h, second);
          size.set(std::abs(u) + std::abs(v), t, h, first);
          size.set(std::abs(u) + std::abs(v), t, h, second);
        }
  }
}

}  // namespace quern::rope
