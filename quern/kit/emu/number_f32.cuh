// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// f32 is float.
#pragma once
#include "quern/kit/emu/entry.cuh"
#include "quern/kit/round.cuh"

namespace quern {

using f32 = float;

namespace ptx {

QN_DEVICE u32 bits_of(f32 x) { return __builtin_bit_cast(u32, x); }
QN_DEVICE f32 f32_of_bits(u32 bits) { return __builtin_bit_cast(f32, bits); }

}  // namespace ptx
}  // namespace quern

#include "quern/kit/emu/approximate.cuh"

namespace quern {
namespace emu {

/// Eight numbers, computed element by element.
using Row8 = f32 __attribute__((vector_size(32), aligned(32)));

QN_DEVICE f32 number_sqrt(f32 x) { return __builtin_sqrtf(x); }
QN_DEVICE void number_sincos(f32 x, f32& sine, f32& cosine) { sine = __builtin_sinf(x), cosine = __builtin_cosf(x); }
QN_DEVICE f32 number_round(f32 x) { return __builtin_rintf(x); }
QN_DEVICE f32 number_abs(f32 x) { return ptx::f32_of_bits(ptx::bits_of(x) & 0x7fffffff); }
QN_DEVICE f32 number_power_of_two_above(f32 x) { return ptx::f32_of_bits(power_of_two_bits_above(ptx::bits_of(x))); }
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
QN_DEVICE f32 widen_e4m3(u32 byte) { return widen_f16(f16x2_bits_of_e4m3x2_over_256(byte)) * 256.f; }
QN_DEVICE f32 widen_e5m2(u32 byte) { return widen_f16(f16x2_bits_of_e5m2x2(byte)); }
QN_DEVICE u16 narrow_bf16(f32 x) { return bf16_bits_of(ptx::bits_of(x)); }
QN_DEVICE u16 narrow_f16(f32 x) { return f16_bits_of(ptx::bits_of(x)); }
QN_DEVICE u8 narrow_e4m3(f32 x) { return e4m3_bits_of(ptx::bits_of(x)); }
QN_DEVICE u8 narrow_e5m2(f32 x) { return e5m2_bits_of(ptx::bits_of(x)); }
QN_DEVICE u8 narrow_s8(f32 x) { return s8_bits_of(ptx::bits_of(x)); }
QN_DEVICE u8 narrow_e8m0(f32 x) { return e8m0_bits_of(ptx::bits_of(x)); }

/// The same for eight at once; each word holds one half in its low bits and zeros above.
QN_DEVICE Row8 widen8_bf16(Words8 halves) { return __builtin_bit_cast(Row8, halves << 16); }
QN_DEVICE Row8 widen8_f16(Words8 halves) {
  const Words8 magnitude = (halves & 0x7fff) << 13;
  Words8 bits = __builtin_bit_cast(Words8, __builtin_bit_cast(Row8, magnitude) * 0x1p112f);
  bits |= (magnitude >= 0x0f800000) & 0x7f800000;
  return __builtin_bit_cast(Row8, bits | (halves & 0x8000) << 16);
}

template <bool is_bf16>
inline __attribute__((always_inline)) Row8 widen8(Words8 halves) {
  if constexpr (is_bf16) return widen8_bf16(halves);
  else return widen8_f16(halves);
}

/// D[16][8] += A[16][k] * B[k][8], each element summed in the order of k. Word j of a row of A: columns 2 j, 2 j + 1; word
/// c of row pair j of B: rows 2 j, 2 j + 1 of column c.
template <int k, bool is_bf16>
inline __attribute__((always_inline)) void number_mma(const Words8* a, const Words8* b, Row8* d) {
  Row8 wide[k];
  for (u32 j = 0; j < k / 2; ++j) {
    wide[2 * j] = widen8<is_bf16>(b[j] & 0xffff);
    wide[2 * j + 1] = widen8<is_bf16>(b[j] >> 16);
  }
  for (u32 row = 0; row < 16; ++row) {
    const Row8 even = widen8<is_bf16>(a[row] & 0xffff), odd = widen8<is_bf16>(a[row] >> 16);
    Row8 sum = d[row];
    for (u32 j = 0; j < k / 2; ++j) {
      sum += even[j] * wide[2 * j];
      sum += odd[j] * wide[2 * j + 1];
    }
    d[row] = sum;
  }
}

}  // namespace emu
}  // namespace quern
