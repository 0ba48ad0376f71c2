// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The functions of the family, and an access of their operands. C is the Config of a kernel: `dtype`, `function`, `operands`.
#pragma once
#include "quern/kit/activation.cuh"
#include "quern/kit/kit.cuh"
#include "quern/ops/activation/activate_row/spec.h"

namespace quern::activation {

/// x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), as x / (1 + exp(-2 sqrt(2 / pi) (x + 0.044715 x^3))), within 7 * 2^-24 |x|:
/// 1 - tanh would lose what is small beside 1. For very negative x exp2 overflows to infinity, and the product is then -0.
QN_DEVICE f32 gelu_tanh(f32 x) {
  constexpr float kLinear = -2.302208198144325f, kCubic = -0.1029432395800235f;  // times log2(e)
  return x * ptx::rcp_approx(f32(1.f) + ptx::exp2_approx(x * ptx::fma(x * x, f32(kCubic), f32(kLinear))));
}

/// The smaller; NaN where one is NaN.
QN_DEVICE f32 smaller_nan(f32 a, f32 b) { return -ptx::fmax_nan(-a, -b); }

/// (up + beta) gate sigmoid(alpha gate) of gate cut to at most limit, up cut to [-limit, limit].
QN_DEVICE f32 clamped_swiglu(f32 gate, f32 up, f32 alpha, f32 beta, f32 limit) {
  gate = smaller_nan(gate, limit);
  up = ptx::fmax_nan(smaller_nan(up, limit), -limit);
  const f32 sigmoid = ptx::rcp_approx(f32(1.f) + ptx::exp2_approx((gate * alpha) * f32(-1.4426950408889634f)));
  return (up + beta) * (gate * sigmoid);
}

template <Function kFunction> QN_DEVICE f32 function_of(f32 x) {
  if constexpr (kFunction == Function::silu) {
    return silu(x);
  } else if constexpr (kFunction == Function::gelu) {
    return gelu(x);
  } else if constexpr (kFunction == Function::gelu_tanh) {
    return gelu_tanh(x);
  } else {
    static_assert(kFunction == Function::relu2);
    const f32 positive = relu(x);
    return positive * positive;
  }
}

/// `vector` columns of the operands, as they lie in memory. Of pairs, the first and the second half of their 2 * vector elements.
template <DType kDType, int kVector> struct Held {
  Packed<dtype_t<kDType>, kVector> first, second;
};

template <auto C, int kVector>
QN_DEVICE void load_operands(const ActivateRowParams& p, i64 row, i64 column, Held<C.dtype, kVector>& held) {
  using T = dtype_t<C.dtype>;
  const T* x = static_cast<const T*>(p.x) + row * p.x_stride;
  if constexpr (C.operands == Operands::alone) {
    held.first = load_packed<T, kVector>(x + column);
  } else if constexpr (C.operands == Operands::halves) {
    held.first = load_packed<T, kVector>(x + column);
    held.second = load_packed<T, kVector>(x + p.columns + column);
  } else if constexpr (C.operands == Operands::pairs) {
    held.first = load_packed<T, kVector>(x + 2 * column);
    held.second = load_packed<T, kVector>(x + 2 * column + kVector);
  } else {
    held.first = load_packed<T, kVector>(static_cast<const T*>(p.gate) + row * p.gate_stride + column);
    held.second = load_packed<T, kVector>(x + column);
  }
}

/// Gates and ups of `vector` columns; of operands that are alone, ups are 0.
template <auto C, int kVector>
QN_DEVICE void gates_and_ups(const Held<C.dtype, kVector>& held, f32 (&gate)[kVector], f32 (&up)[kVector]) {
  f32 first[kVector], second[kVector];
  unpack(held.first, first);
  if constexpr (C.operands != Operands::alone) unpack(held.second, second);
  QN_UNROLL
  for (int j = 0; j < kVector; ++j) {
    gate[j] = first[j], up[j] = C.operands == Operands::alone ? f32(0.f) : second[j];
    if constexpr (C.operands == Operands::pairs) {
      const int g = 2 * j, u = 2 * j + 1;
      gate[j] = g < kVector ? first[g % kVector] : second[g % kVector];
      up[j] = u < kVector ? first[u % kVector] : second[u % kVector];
    }
  }
}

/// The results of `vector` columns.
template <auto C, int kVector>
QN_DEVICE void results_of(const ActivateRowParams& p, const Held<C.dtype, kVector>& held, f32 (&y)[kVector]) {
  f32 gate[kVector], up[kVector];
  gates_and_ups<C, kVector>(held, gate, up);
  QN_UNROLL
  for (int j = 0; j < kVector; ++j) {
    if constexpr (C.function == Function::clamped_swiglu) y[j] = clamped_swiglu(gate[j], up[j], f32(p.alpha), f32(p.beta), f32(p.limit));
    else if constexpr (C.operands == Operands::alone) y[j] = function_of<C.function>(gate[j]);
    else y[j] = function_of<C.function>(gate[j]) * up[j];
  }
}

}  // namespace quern::activation
