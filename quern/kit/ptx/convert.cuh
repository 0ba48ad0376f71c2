// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// 9.7.9.21 cvt: between f32 and the small formats, to nearest even. fp8 conversion is an instruction from sm_89 on;
// before, it is integer arithmetic, and 9.7.4.3 mul from e4m3.
#pragma once
#include "quern/kit/ptx/number.cuh"
#include "quern/kit/round.cuh"

namespace quern::ptx {

QN_DEVICE f32 to_f32(bf16 x) { return f32_of_bits(u32(x.bits) << 16); }
QN_DEVICE f32 to_f32(f16 x) {
  f32 wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
  return wide;
}
QN_DEVICE bf16 to_bf16(f32 x) {
  u16 bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return {bits};
}
QN_DEVICE f16 to_f16(f32 x) {
  u16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return {bits};
}

/// Packed pairs: `low` goes to the lower half.
QN_DEVICE u32 pack_bf16(f32 low, f32 high) {
  u32 pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
QN_DEVICE u32 pack_f16(f32 low, f32 high) {
  u32 pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
QN_DEVICE void unpack_bf16(u32 pair, f32& low, f32& high) {
  low = f32_of_bits(pair << 16);
  high = f32_of_bits(pair & 0xffff0000u);
}
QN_DEVICE void unpack_f16(u32 pair, f32& low, f32& high) {
  low = to_f32(f16{u16(pair)});
  high = to_f32(f16{u16(pair >> 16)});
}

#if __CUDA_ARCH__ >= 890
QN_DEVICE u16 pack_e4m3(f32 low, f32 high) {
  u16 pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
  return pair;
}
QN_DEVICE u16 pack_e5m2(f32 low, f32 high) {
  u16 pair;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
  return pair;
}
QN_DEVICE u32 f16x2_of_e4m3x2(u16 pair) {
  u32 wide;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(wide) : "h"(pair));
  return wide;
}
QN_DEVICE u32 f16x2_of_e5m2x2(u16 pair) {
  u32 wide;
  asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(wide) : "h"(pair));
  return wide;
}
#else
QN_DEVICE u16 pack_e4m3(f32 low, f32 high) { return u16(e4m3_bits_of(bits_of(low)) | e4m3_bits_of(bits_of(high)) << 8); }
QN_DEVICE u16 pack_e5m2(f32 low, f32 high) { return u16(e5m2_bits_of(bits_of(low)) | e5m2_bits_of(bits_of(high)) << 8); }
QN_DEVICE u32 f16x2_of_e4m3x2(u16 pair) {
  u32 wide;  // times 256, exactly
  asm("mul.f16x2 %0, %1, %2;" : "=r"(wide) : "r"(f16x2_bits_of_e4m3x2_over_256(pair)), "r"(0x5c005c00));
  return wide;
}
QN_DEVICE u32 f16x2_of_e5m2x2(u16 pair) { return f16x2_bits_of_e5m2x2(pair); }
#endif

/// The smallest power of two that is not below x >= 0: what cvt.rp.satfinite.ue8m0x2.f32 holds, an instruction from sm_100 on.
QN_DEVICE f32 power_of_two_above(f32 x) { return f32_of_bits(power_of_two_bits_above(bits_of(x))); }

/// To the nearest integer, even where two are, cut to -127 .. 127; 0 for NaN.
QN_DEVICE s8 to_s8(f32 x) {
  i32 rounded;
  asm("cvt.rni.sat.s8.f32 %0, %1;" : "=r"(rounded) : "f"(x));
  return {u8(max_of(rounded, -127))};
}
/// The exponent of a power of two; 255 of NaN and infinity.
QN_DEVICE e8m0 to_e8m0(f32 power) { return {e8m0_bits_of(bits_of(power))}; }
QN_DEVICE f32 to_f32(e8m0 x) { return f32_of_bits(bits_of_e8m0(x.bits)); }

QN_DEVICE e4m3 to_e4m3(f32 x) { return {u8(pack_e4m3(x, 0.0f))}; }
QN_DEVICE e5m2 to_e5m2(f32 x) { return {u8(pack_e5m2(x, 0.0f))}; }
QN_DEVICE f32 to_f32(e4m3 x) { return to_f32(f16{u16(f16x2_of_e4m3x2(x.bits))}); }
QN_DEVICE f32 to_f32(e5m2 x) { return to_f32(f16{u16(f16x2_of_e5m2x2(x.bits))}); }
QN_DEVICE void unpack_e4m3(u16 pair, f32& low, f32& high) { unpack_f16(f16x2_of_e4m3x2(pair), low, high); }
QN_DEVICE void unpack_e5m2(u16 pair, f32& low, f32& high) { unpack_f16(f16x2_of_e5m2x2(pair), low, high); }

}  // namespace quern::ptx
