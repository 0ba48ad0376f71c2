// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Activations of one value; a kernel includes this beside kit.cuh. NaN stays NaN.
#pragma once
#include "quern/kit/world.cuh"

namespace quern {

/// Not by fmax, which would make 0 of NaN.
QN_DEVICE f32 relu(f32 x) { return x < f32(0.f) ? f32(0.f) : x; }

/// x / (1 + exp(-x)), within 6 * 2^-24 |x|. For very negative x exp2 overflows to infinity, and the product is then -0.
QN_DEVICE f32 silu(f32 x) { return x * ptx::rcp_approx(f32(1.f) + ptx::exp2_approx(x * f32(-1.4426950408889634f))); }

/// x P(X <= x) of a normal X, by its definition with erf and not by the approximation with tanh; within 8 * 2^-24 |x|. As
/// max(x, 0) - |x| P(X > |x|), whose second factor is one exp2 of a polynomial: erf by an exponential and a reciprocal would
/// be two of the instructions of which a multiprocessor does 16 a clock.
QN_DEVICE f32 gelu(f32 x) {
  const f32 y = ptx::fmin(ptx::fabs(x), f32(kGeluLast));
  f32 log2_tail = f32(gelu_tail(kGeluTerms - 1));
  QN_UNROLL
  for (int i = kGeluTerms - 2; i >= 0; --i) log2_tail = ptx::fma(log2_tail, y, f32(gelu_tail(i)));
  return ptx::fma(-y, ptx::exp2_approx(log2_tail), relu(x));
}

template <Activation kActivation>
QN_DEVICE f32 activated(f32 x) {
  if constexpr (kActivation == Activation::relu) return relu(x);
  else if constexpr (kActivation == Activation::gelu) return gelu(x);
  else if constexpr (kActivation == Activation::silu) return silu(x);
  else return x;
}

}  // namespace quern
