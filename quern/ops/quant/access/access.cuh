// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the quantisers of the family do with one access of x that lies in registers.
#pragma once
#include "quern/kit/fp8_scale.cuh"
#include "quern/kit/kit.cuh"

namespace quern::quant {

/// The largest of `amax` and the magnitudes of the access; NaN once one was NaN.
template <class T, int kVector> QN_DEVICE f32 amax_with(f32 amax, const Packed<T, kVector>& access) {
  f32 v[kVector];
  unpack(access, v);
  QN_UNROLL
  for (int j = 0; j < kVector; ++j) amax = ptx::fmax_nan(amax, ptx::fabs(v[j]));
  return amax;
}

/// to[j] = x[j] * inverse, rounded.
template <class Q, class T, int kVector> QN_DEVICE void store_quantised(Q* to, const Packed<T, kVector>& access, f32 inverse) {
  f32 v[kVector];
  unpack(access, v);
  QN_UNROLL
  for (int j = 0; j < kVector; ++j) v[j] = v[j] * inverse;
  store_f32<Q, kVector>(to, v);
}

}  // namespace quern::quant
