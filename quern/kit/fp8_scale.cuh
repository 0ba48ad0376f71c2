// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Scales of numbers that are stored in FP8: q * scale is about x. A scale is shared by a group of numbers.
#pragma once
#include "quern/kit/dtype.cuh"

namespace quern {

/// The largest finite value of an fp8 format.
template <DType D> constexpr float kLargestFp8 = D == DType::e4m3 ? 448.f : 57344.f;

/// The scale of a group whose largest magnitude is `amax`: max(amax, 1e-4) / largest, divided exactly, so that a group of
/// zeros has one too; on demand rounded up to a power of two. NaN and infinity stay.
template <DType D> QN_DEVICE f32 fp8_scale(f32 amax, bool power_of_two) {
  static_assert(D == DType::e4m3 || D == DType::e5m2);
  const f32 scale = ptx::div(ptx::fmax_nan(amax, f32(1e-4f)), f32(kLargestFp8<D>));
  return power_of_two ? ptx::power_of_two_above(scale) : scale;
}

/// What numbers are multiplied by before they are rounded.
QN_DEVICE f32 fp8_inverse(f32 scale) { return ptx::div(f32(1.f), scale); }

}  // namespace quern
