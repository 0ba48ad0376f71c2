// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// f32 and the primitives that know what it is. A later mode replaces this file to compute with another 4-byte type
// (order-free integers, a recorder of sums); no other file of kit/emu may assume that f32 is float.
#pragma once
#include "quern/kit/emu/entry.cuh"

namespace quern {

using f32 = float;

namespace ptx {

QN_DEVICE u32 bits_of(f32 x) { return __builtin_bit_cast(u32, x); }
QN_DEVICE f32 f32_of_bits(u32 bits) { return __builtin_bit_cast(f32, bits); }

}  // namespace ptx

namespace emu {

/// Eight numbers, computed element by element.
using Row8 = f32 __attribute__((vector_size(32), aligned(32)));

QN_DEVICE f32 number_sqrt(f32 x) { return __builtin_sqrtf(x); }
QN_DEVICE f32 number_exp2(f32 x) { return __builtin_exp2f(x); }
QN_DEVICE f32 number_log2(f32 x) { return __builtin_log2f(x); }
QN_DEVICE f32 number_tanh(f32 x) { return __builtin_tanhf(x); }
QN_DEVICE f32 number_sin(f32 x) { return __builtin_sinf(x); }
QN_DEVICE f32 number_cos(f32 x) { return __builtin_cosf(x); }
QN_DEVICE f32 number_round(f32 x) { return __builtin_rintf(x); }
QN_DEVICE f32 number_fma(f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); }

/// Exact value of an f16, without a table: the exponent is rebiased by a multiplication, which also scales subnormals.
/// Every NaN becomes the canonical one, as cvt does it.
QN_DEVICE f32 widen_f16(u32 half) {
  const u32 magnitude = (half & 0x7fff) << 13;
  if (magnitude > 0x0f800000) return __builtin_bit_cast(f32, 0x7fffffff);
  u32 bits = __builtin_bit_cast(u32, __builtin_bit_cast(float, magnitude) * 0x1p112f);
  if (magnitude == 0x0f800000) bits |= 0x7f800000;
  return __builtin_bit_cast(f32, bits | (half & 0x8000) << 16);
}
QN_DEVICE f32 widen_bf16(u32 half) { return __builtin_bit_cast(f32, half << 16); }

/// The same for eight at once; each word holds one half in its low bits and zeros above.
using Words8 = u32 __attribute__((vector_size(32), aligned(32)));
QN_DEVICE Row8 widen8_bf16(Words8 halves) { return __builtin_bit_cast(Row8, halves << 16); }
QN_DEVICE Row8 widen8_f16(Words8 halves) {
  const Words8 magnitude = (halves & 0x7fff) << 13;
  Words8 bits = __builtin_bit_cast(Words8, __builtin_bit_cast(Row8, magnitude) * 0x1p112f);
  bits |= (magnitude >= 0x0f800000) & 0x7f800000;
  return __builtin_bit_cast(Row8, bits | (halves & 0x8000) << 16);
}

}  // namespace emu
}  // namespace quern
