// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The functions of the family and their derivatives.
#pragma once
#include "quern/kit/activation.cuh"
#include "quern/kit/kit.cuh"
#include "quern/ops/activation/activate_row/function.cuh"

namespace quern::activation {

struct Slope {
  f32 value, slope;
};

/// s = 1 / (1 + 2^-h), and 1 - s, each with a small relative error: by 2^-|h|, which does not overflow, and without a difference. |h| is
/// chosen by the sign that chooses the result: numbers without an order have no other.
struct Sigmoid {
  f32 s, rest;
};
QN_DEVICE Sigmoid sigmoid_of_log2(f32 h) {
  const bool negative = h < f32(0.f);
  const f32 e = ptx::exp2_approx(negative ? h : -h), larger = ptx::rcp_approx(f32(1.f) + e), smaller = e * larger;
  return negative ? Sigmoid{smaller, larger} : Sigmoid{larger, smaller};
}

/// s + factor s (1 - s), or s, the limit, where s (1 - s) is 0, also beside a factor that is infinite.
QN_DEVICE f32 slope_of_sigmoid(const Sigmoid& at, f32 factor) {
  const f32 both = at.s * at.rest;
  return both == f32(0.f) ? at.s : ptx::fma(factor, both, at.s);
}

/// x s(factor x), and its derivative s + factor x s (1 - s).
QN_DEVICE Slope sigmoid_slope(f32 x, f32 factor) {
  const f32 h = x * factor;
  const Sigmoid at = sigmoid_of_log2(h * f32(1.4426950408889634f));
  return {x * at.s, slope_of_sigmoid(at, h)};
}

/// x P(X <= x) of a normal X, as the kit's gelu has it, and P(X <= x) + x times the density at x.
QN_DEVICE Slope gelu_slope(f32 x) {
  const f32 y = ptx::fmin(ptx::fabs(x), f32(kGeluLast));
  f32 log2_tail = f32(gelu_tail(kGeluTerms - 1));
  QN_UNROLL
  for (int i = kGeluTerms - 2; i >= 0; --i) log2_tail = ptx::fma(log2_tail, y, f32(gelu_tail(i)));
  const f32 tail = ptx::exp2_approx(log2_tail);
  const f32 density = f32(0.3989422804014327f) * ptx::exp2_approx((x * x) * f32(-0.7213475204444817f));
  return {ptx::fma(-y, tail, relu(x)), ptx::fma(x, density, x < f32(0.f) ? tail : f32(1.f) - tail)};
}

/// x s(z), z = 2 sqrt(2 / pi) (x + 0.044715 x^3), and s + x s (1 - s) dz/dx.
QN_DEVICE Slope gelu_tanh_slope(f32 x) {
  constexpr float kLinear = 2.302208198144325f, kCubic = 0.1029432395800235f;     // of z, times log2(e)
  constexpr float kSlope = 1.5957691216057308f, kSlopeSquare = 0.2140644488178f;  // of dz/dx
  const f32 square = x * x;
  const Sigmoid at = sigmoid_of_log2(x * ptx::fma(square, f32(kCubic), f32(kLinear)));
  return {x * at.s, slope_of_sigmoid(at, x * ptx::fma(square, f32(kSlopeSquare), f32(kSlope)))};
}

template <Function kFunction> QN_DEVICE Slope slope_of(f32 x) {
  if constexpr (kFunction == Function::silu) {
    return sigmoid_slope(x, f32(1.f));
  } else if constexpr (kFunction == Function::gelu) {
    return gelu_slope(x);
  } else if constexpr (kFunction == Function::gelu_tanh) {
    return gelu_tanh_slope(x);
  } else {
    static_assert(kFunction == Function::relu2);
    const f32 positive = relu(x);
    return {positive * positive, positive + positive};
  }
}

/// Gradients of gate and up.
struct GateUp {
  f32 gate, up;
};
template <auto C> QN_DEVICE GateUp gradients_of(const ActivateRowParams& p, f32 dy, f32 gate, f32 up) {
  if constexpr (C.function == Function::clamped_swiglu) {
    const f32 limit = p.limit, g = smaller_nan(gate, limit), u = ptx::fmax_nan(smaller_nan(up, limit), -limit);
    const Slope at = sigmoid_slope(g, f32(p.alpha));
    // What was cut has no slope; a value at the limit itself has
    return {gate > limit ? f32(0.f) : dy * at.slope * (u + f32(p.beta)), ptx::fabs(up) > limit ? f32(0.f) : dy * at.value};
  } else {
    const Slope at = slope_of<C.function>(gate);
    if constexpr (C.operands == Operands::alone) return {dy * at.slope, f32(0.f)};
    else return {dy * at.slope * up, dy * at.value};
  }
}

}  // namespace quern::activation
