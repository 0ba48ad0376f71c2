// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Rounding of f32 to the small formats in integer arithmetic, for the emulated device and for GPUs without the
// instruction. Works on bit patterns only.
#pragma once
#include "quern/kit/abi.h"

namespace quern {

/// Round to nearest even to a format of `mantissa` stored bits and exponent bias `bias`, for finite |x|. The result may
/// exceed the largest finite value: callers clamp it. magnitude is the pattern of |x|.
template <int mantissa, int bias>
QN_HOST_DEVICE constexpr u32 round_magnitude(u32 magnitude) {
  constexpr int kShift = 23 - mantissa;
  const int exponent = int(magnitude >> 23) - 127 + bias;
  if (exponent >= 1) {
    const u32 rebiased = magnitude - (u32(127 - bias) << 23);
    return (rebiased + (u32(1) << (kShift - 1)) - 1 + ((rebiased >> kShift) & 1)) >> kShift;
  }
  // Subnormal in the target: shift the full significand down to units of the smallest subnormal.
  const int shift = kShift + 1 - exponent;
  if (shift > 25) return 0;
  const u32 significand = (magnitude & 0x7fffff) | (magnitude >> 23 ? 0x800000 : 0);
  const u32 half = u32(1) << (shift - 1);
  return (significand + half - 1 + ((significand >> shift) & 1)) >> shift;
}

QN_HOST_DEVICE constexpr u16 bf16_bits_of(u32 f) {
  if ((f & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return u16((f + 0x7fff + ((f >> 16) & 1)) >> 16);
}
QN_HOST_DEVICE constexpr u16 f16_bits_of(u32 f) {
  const u32 magnitude = f & 0x7fffffff;
  if (magnitude > 0x7f800000) return 0x7fff;
  const u32 rounded = magnitude >= 0x47800000 ? 0x7c00 : round_magnitude<10, 15>(magnitude);
  return u16((f >> 16 & 0x8000) | min_of<u32>(rounded, 0x7c00));
}
/// Saturates to +-448; NaN gives 0x7f.
QN_HOST_DEVICE constexpr u8 e4m3_bits_of(u32 f) {
  const u32 magnitude = f & 0x7fffffff;
  if (magnitude > 0x7f800000) return 0x7f;
  const u32 rounded = magnitude >= 0x43e00000 ? 0x7e : round_magnitude<3, 7>(magnitude);
  return u8((f >> 24 & 0x80) | min_of<u32>(rounded, 0x7e));
}
/// Saturates to +-57344; NaN gives 0x7f.
QN_HOST_DEVICE constexpr u8 e5m2_bits_of(u32 f) {
  const u32 magnitude = f & 0x7fffffff;
  if (magnitude > 0x7f800000) return 0x7f;
  const u32 rounded = magnitude >= 0x47600000 ? 0x7b : round_magnitude<2, 15>(magnitude);
  return u8((f >> 24 & 0x80) | min_of<u32>(rounded, 0x7b));
}
/// Pattern of the smallest power of two that is not below a number >= 0 (2^-126 for subnormals): the values of the format
/// UE8M0, rounded up. 0, infinity and NaN stay.
QN_HOST_DEVICE constexpr u32 power_of_two_bits_above(u32 f) {
  if (f > 0x7f800000) return 0x7fffffff;
  return (f + 0x7fffff) & 0x7f800000;
}
/// The nearest integer, even where two are, cut to -127 .. 127; 0 for NaN.
QN_HOST_DEVICE constexpr u8 s8_bits_of(u32 f) {
  const u32 magnitude = f & 0x7fffffff;
  if (magnitude > 0x7f800000) return 0;
  if (magnitude >= 0x42fe0000) return f >> 31 ? 0x81 : 0x7f;
  // A significand of 24 bits whose last `shift` are behind the point
  const int shift = 150 - int(magnitude >> 23);
  if (shift > 25) return 0;
  const u32 significand = (magnitude & 0x7fffff) | 0x800000;
  const u32 rounded = (significand + (u32(1) << (shift - 1)) - 1 + ((significand >> shift) & 1)) >> shift;
  return u8(f >> 31 ? 0 - rounded : rounded);
}
/// The exponent of a power of two of the format UE8M0; infinity and NaN are 255.
QN_HOST_DEVICE constexpr u8 e8m0_bits_of(u32 f) { return u8(f >> 23); }
/// 2^(byte - 127), which is a subnormal for 0; 255 is NaN.
QN_HOST_DEVICE constexpr u32 bits_of_e8m0(u32 byte) { return byte == 255 ? 0x7fffffff : byte == 0 ? 0x00400000 : byte << 23; }
/// Two e4m3 as f16 of 2^-8 times their value: the bits of each in the upper part of 16, its exponent without the change of bias,
/// so that subnormals need no case of their own. NaN becomes NaN.
QN_HOST_DEVICE constexpr u32 f16x2_bits_of_e4m3x2_over_256(u32 pair) {
  const u32 apart = (pair & 0xff) << 8 | (pair & 0xff00) << 16, magnitude = (apart & 0x7f007f00) >> 1;
  return (apart & 0x80008000) | magnitude | ((magnitude + 0x00800080) & 0x40004000);
}
/// An e5m2 is the upper byte of an f16.
QN_HOST_DEVICE constexpr u32 f16x2_bits_of_e5m2x2(u32 pair) { return (pair & 0xff) << 8 | (pair & 0xff00) << 16; }

}  // namespace quern
