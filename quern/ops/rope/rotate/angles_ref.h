// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cmath>

#include "quern/op/ref.h"

namespace quern::rope {

/// Angle per position of pair i, in double, by the textbook formula. A is an op's Args.
template <class A> double frequency_ref(const A& a, i64 i, i64 rotary_dim) {
  const double pi = std::acos(-1.0);
  if constexpr (requires { a.frequencies; })
    if (a.frequencies.present()) return 2 * pi * (Ref(a.frequencies)(i, 0) + Ref(a.frequencies)(i, 1));
  double f = std::pow(double(a.theta), -2.0 * double(i) / double(rotary_dim)) / double(a.scale);
  if (a.llama31_factor == 1.f) return f;
  const double wavelength = 2 * pi / f;
  const double low = double(a.original_max) / double(a.low_freq_factor), high = double(a.original_max) / double(a.high_freq_factor);
  if (wavelength > low) return f / double(a.llama31_factor);
  if (wavelength < high) return f;
  const double smooth =
      (double(a.original_max) / wavelength - double(a.low_freq_factor)) / (double(a.high_freq_factor) - double(a.low_freq_factor));
  return (1 - smooth) * f / double(a.llama31_factor) + smooth * f;
}

/// The position by which pair i of token t turns.
template <class A> i64 position_ref(const A& a, i64 t, i64 i) {
  if constexpr (requires { a.mrope_positions; })
    if (a.mrope_positions.present()) {
      const i64 s[] = {a.mrope_section_t, a.mrope_section_h, a.mrope_section_w};
      i64 section = 0;
      if (a.mrope_interleaved) {
        if (i % 3 == 1 && i < 3 * s[1]) section = 1;
        if (i % 3 == 2 && i < 3 * s[2]) section = 2;
      } else {
        for (i64 end = s[0]; section < 2 && i >= end; end += s[section]) ++section;
      }
      return Ref(a.mrope_positions).index(section, t);
    }
  if constexpr (requires { a.indptr; })
    if (a.indptr.present()) {
      const Ref indptr(a.indptr), offsets(a.offsets);
      for (i64 b = 0; b < offsets.dim(0); ++b)
        if (t >= indptr.index(b) && t < indptr.index(b + 1)) return offsets.index(b) + t - indptr.index(b);
      return 0;
    }
  return Ref(a.positions).index(t);
}

struct RotationRef {
  double cosine, sine;
  double cosine_size, sine_size;  ///< what errors of them are measured by
};

template <class A> RotationRef rotation_ref(const A& a, i64 t, i64 i, i64 rotary_dim) {
  const i64 position = position_ref(a, t, i);
  if constexpr (requires { a.cos; })
    if (a.cos.present()) {
      if (position < 0 || position >= a.cos.shape[0]) return {NAN, NAN, 1, 1};
      const double c = Ref(a.cos)(position, i), s = Ref(a.sin)(position, i);
      return {c, s, std::abs(c), std::abs(s)};
    }
  double scale = 1;
  if constexpr (requires { a.cos_sin_scale; }) scale = double(a.cos_sin_scale);
  if (position < 0 || position >= 16777216) return {NAN, NAN, 1, 1};
  const double angle = double(position) * frequency_ref(a, i, rotary_dim);
  return {scale * std::cos(angle), scale * std::sin(angle), scale, scale};
}

/// Rotated elements of a head of head_dim elements.
template <class A> i64 rotary_dim_ref(const A& a, i64 head_dim) {
  if (a.rotary_dim) return a.rotary_dim;
  if constexpr (requires { a.cos; }) {
    if (a.cos.present()) return 2 * a.cos.shape[1];
    if (a.frequencies.present()) return 2 * a.frequencies.shape[0];
  }
  return head_dim;
}

/// Calls f(first, second, rotation) for each pair of the token's heads.
template <class A, class F> void each_pair_ref(const A& a, i64 t, i64 head_dim, const F& f) {
  const i64 rotary_dim = rotary_dim_ref(a, head_dim);
  for (i64 i = 0; i < rotary_dim / 2; ++i)
    f(a.interleaved ? 2 * i : i, a.interleaved ? 2 * i + 1 : i + rotary_dim / 2, rotation_ref(a, t, i, rotary_dim));
}

}  // namespace quern::rope
