// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// tanh with a small relative error; a kernel includes this beside kit.cuh.
#pragma once
#include "quern/kit/world.cuh"

namespace quern {

template <class T> constexpr bool kIsFloat = false;
template <> inline constexpr bool kIsFloat<float> = true;

/// tanh(x), relative error below 2^-20.9 for every x: a soft cap multiplies it, so an absolute error would grow with the cap.
/// tanh.approx has 2^-11, and 1 - 2 / (1 + exp(2 x)) loses what is small beside 1. Below kTanhSplit it is an odd polynomial:
/// minimax error 2^-24.7, with its roundings 2^-23.2. Above, exp2 (2^-22) and rcp (2^-23) leave 2^-20.97 of |tanh|, most at the split.
/// NaN stays NaN.
constexpr float kTanhSplit = 0.55f;
QN_DEVICE f32 accurate_tanh(f32 x) {
  if constexpr (!kIsFloat<f32>) {
    return ptx::tanh_approx(x);  // numbers of proofs have no size that could choose a branch: there tanh is one function
  } else {
    const f32 size = ptx::fabs(x), y = x * x;
    const f32 fraction = ptx::rcp_approx(f32(1.f) + ptx::exp2_approx(size * f32(2.8853900817779268f)));  // 2 log2(e)
    const f32 large = ptx::fma(f32(-2.f), fraction, f32(1.f));
    f32 tail = ptx::fma(f32(0.0164375806f), y, f32(-0.0526718133f));
    tail = ptx::fma(tail, y, f32(0.133207251f));
    tail = ptx::fma(tail, y, f32(-0.333329466f));
    const f32 small = ptx::fma(x * y, tail, x);
    const f32 with_sign = ptx::f32_of_bits(ptx::bits_of(large) | (ptx::bits_of(x) & 0x80000000u));
    return size < f32(kTanhSplit) ? small : with_sign;
  }
}

}  // namespace quern
