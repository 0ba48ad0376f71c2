// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Conversions between f32 and the small formats, rounded as the hardware rounds: to nearest even; f16 and bf16 overflow
// to infinity, fp8 and s8 saturate to their largest finite value, NaN becomes the canonical NaN, or 0 in s8.
#pragma once
#include "quern/kit/emu/number.cuh"
#include "quern/kit/round.cuh"

namespace quern::ptx {

QN_DEVICE f32 to_f32(bf16 x) { return emu::widen_bf16(x.bits); }
QN_DEVICE f32 to_f32(f16 x) { return emu::widen_f16(x.bits); }
QN_DEVICE f32 to_f32(e4m3 x) { return emu::widen_e4m3(x.bits); }
QN_DEVICE f32 to_f32(e5m2 x) { return emu::widen_e5m2(x.bits); }
QN_DEVICE f32 to_f32(e8m0 x) { return f32(__builtin_bit_cast(float, bits_of_e8m0(x.bits))); }

QN_DEVICE bf16 to_bf16(f32 x) { return {emu::narrow_bf16(x)}; }
QN_DEVICE f16 to_f16(f32 x) { return {emu::narrow_f16(x)}; }
QN_DEVICE e4m3 to_e4m3(f32 x) { return {emu::narrow_e4m3(x)}; }
QN_DEVICE e5m2 to_e5m2(f32 x) { return {emu::narrow_e5m2(x)}; }
QN_DEVICE s8 to_s8(f32 x) { return {emu::narrow_s8(x)}; }
QN_DEVICE e8m0 to_e8m0(f32 power) { return {emu::narrow_e8m0(power)}; }

/// Packed pairs: `low` goes to the lower half.
QN_DEVICE u32 pack_bf16(f32 low, f32 high) { return to_bf16(low).bits | u32(to_bf16(high).bits) << 16; }
QN_DEVICE u32 pack_f16(f32 low, f32 high) { return to_f16(low).bits | u32(to_f16(high).bits) << 16; }
QN_DEVICE u16 pack_e4m3(f32 low, f32 high) { return u16(to_e4m3(low).bits | to_e4m3(high).bits << 8); }
QN_DEVICE u16 pack_e5m2(f32 low, f32 high) { return u16(to_e5m2(low).bits | to_e5m2(high).bits << 8); }

QN_DEVICE void unpack_bf16(u32 pair, f32& low, f32& high) {
  low = emu::widen_bf16(pair & 0xffff);
  high = emu::widen_bf16(pair >> 16);
}
QN_DEVICE void unpack_f16(u32 pair, f32& low, f32& high) {
  low = emu::widen_f16(pair & 0xffff);
  high = emu::widen_f16(pair >> 16);
}
QN_DEVICE void unpack_e4m3(u16 pair, f32& low, f32& high) {
  low = to_f32(e4m3{u8(pair)});
  high = to_f32(e4m3{u8(pair >> 8)});
}
QN_DEVICE void unpack_e5m2(u16 pair, f32& low, f32& high) {
  low = to_f32(e5m2{u8(pair)});
  high = to_f32(e5m2{u8(pair >> 8)});
}
/// Exact: f16 has every value of both.
QN_DEVICE u32 f16x2_of_e4m3x2(u16 pair) { return pack_f16(to_f32(e4m3{u8(pair)}), to_f32(e4m3{u8(pair >> 8)})); }
QN_DEVICE u32 f16x2_of_e5m2x2(u16 pair) { return pack_f16(to_f32(e5m2{u8(pair)}), to_f32(e5m2{u8(pair >> 8)})); }

/// The smallest power of two that is not below x >= 0.
QN_DEVICE f32 power_of_two_above(f32 x) { return emu::number_power_of_two_above(x); }

}  // namespace quern::ptx
