// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The GPU's approximate instructions on float, as bad as the PTX ISA allows (9.7.3, single precision): each result differs from
// the exact value by half or all of the documented bound, up or down. The argument's bits and the device's seed choose which,
// so a call has the same bits wherever and whenever it is made. Exact are only zeros, infinities, NaN, what .ftz flushes, and
// powers of two where the exact result is simple: exp2 of integers, rcp of powers of 2, rsqrt of powers of 4. log2 is exact of 1 alone: an
// H200 errs at 0.5, 0.25 and 2^-126.
#pragma once
#include "quern/kit/emu/entry.cuh"

namespace quern::emu {

QN_DEVICE f32 number_flush(f32 x) {
  const u32 bits = ptx::bits_of(x);
  return (bits & 0x7f800000) == 0 ? ptx::f32_of_bits(bits & 0x80000000) : x;
}
QN_DEVICE bool is_finite(f32 x) { return (ptx::bits_of(x) & 0x7f800000) != 0x7f800000; }
/// Zeros, infinities, NaN and powers of two have no mantissa but for NaN's.
QN_DEVICE bool has_mantissa(f32 x) { return is_finite(x) && (ptx::bits_of(x) & 0x007fffff) != 0; }

/// Documented bounds. rcp: 1 ulp, exp2: 2 ulp. log2: absolute where the argument is near 1, else relative. sin, cos: absolute;
/// further out than kFarAngle nothing is promised.
constexpr double kTanhError = 0x1p-11, kRsqrtError = 0x1.125fbep-23 /* 2^-22.9 */, kLog2Error = 0x1p-22;
constexpr double kSinError = 0x1.6a09e6p-21 /* 2^-20.5 */, kSinErrorFar = 0x1.3b2c47p-15 /* 2^-14.7 */, kSinErrorBeyond = 1;
constexpr double kNearAngle = 6.283185307179586, kFarAngle = 314.1592653589793;

enum class Approximate : u32 { exp2, log2, rcp, rsqrt, tanh, sin, cos };

/// 1, 0.5, -0.5 or -1.
QN_DEVICE double share_of_error(Approximate function, f32 x) {
  u32 hash = (ptx::bits_of(x) ^ current()->error_seed) + u32(function) * 0x9e3779b9u;
  hash = (hash ^ hash >> 16) * 0x85ebca6bu;
  hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
  const double size = hash & 0x10000 ? 1.0 : 0.5;
  return hash & 0x20000 ? -size : size;
}

/// The f32 nearest to exact + error among those that are no further from `exact` than that.
QN_DEVICE f32 off_by(double exact, double error) {
  const double aim = exact + error;
  const f32 rounded = f32(aim);
  const bool outside = error > 0 ? double(rounded) > aim : double(rounded) < aim;
  if (!outside) return rounded;
  const u32 bits = ptx::bits_of(rounded);
  const bool grows = (error < 0) == (bits >> 31 == 0);
  return ptx::f32_of_bits(grows ? bits + 1 : bits - 1);
}
QN_DEVICE f32 approximate(Approximate function, f32 x, double exact, double bound) {
  return off_by(exact, share_of_error(function, x) * bound);
}
/// Of f32 at a normal number.
QN_DEVICE double ulp_of(double x) {
  const u64 exponent = __builtin_bit_cast(u64, x) >> 52 & 0x7ff;
  return __builtin_bit_cast(double, (exponent - 23) << 52);
}
QN_DEVICE f32 within_one(f32 x) { return x > 1.f ? 1.f : x < -1.f ? -1.f : x; }

QN_DEVICE f32 number_exp2(f32 x) {
  x = number_flush(x);
  // An integer, infinite, NaN, or the result is not normal
  if (!(x > -126.f && x < 128.f) || x == __builtin_rintf(x)) return number_flush(__builtin_exp2f(x));
  const double exact = __builtin_exp2(double(x));
  return number_flush(approximate(Approximate::exp2, x, exact, 2 * ulp_of(exact)));
}
QN_DEVICE f32 number_log2(f32 x) {
  x = number_flush(x);
  if (!(x > 0.f) || !is_finite(x) || x == 1.f) return __builtin_log2f(x);
  const double exact = __builtin_log2(double(x));
  return approximate(Approximate::log2, x, exact, x > 0.5f && x < 2.f ? kLog2Error : __builtin_fabs(exact) * kLog2Error);
}
QN_DEVICE f32 number_rcp(f32 x) {
  x = number_flush(x);
  const f32 nearest = number_flush(1.0f / x);
  if (!has_mantissa(x) || nearest == 0.f) return nearest;
  const double exact = 1.0 / double(x);
  return number_flush(approximate(Approximate::rcp, x, exact, ulp_of(exact)));
}
QN_DEVICE f32 number_rsqrt(f32 x) {
  x = number_flush(x);
  const bool power_of_4 = !has_mantissa(x) && (ptx::bits_of(x) >> 23 & 1) != 0;
  if (!(x > 0.f) || !is_finite(x) || power_of_4) return 1.0f / __builtin_sqrtf(x);
  const double exact = 1.0 / __builtin_sqrt(double(x));
  return approximate(Approximate::rsqrt, x, exact, exact * kRsqrtError);
}
/// Does not flush.
QN_DEVICE f32 number_tanh(f32 x) {
  if (!is_finite(x) || x == 0.f) return __builtin_tanhf(x);
  const double exact = __builtin_tanh(double(x));
  return within_one(approximate(Approximate::tanh, x, exact, __builtin_fabs(exact) * kTanhError));
}
QN_DEVICE double sin_error(f32 x) {
  const double size = __builtin_fabs(double(x));
  return size <= kNearAngle ? kSinError : size <= kFarAngle ? kSinErrorFar : kSinErrorBeyond;
}
QN_DEVICE f32 number_sin(f32 x) {
  x = number_flush(x);
  if (!is_finite(x) || x == 0.f) return __builtin_sinf(x);
  return within_one(approximate(Approximate::sin, x, __builtin_sin(double(x)), sin_error(x)));
}
QN_DEVICE f32 number_cos(f32 x) {
  x = number_flush(x);
  if (!is_finite(x) || x == 0.f) return __builtin_cosf(x);
  return within_one(approximate(Approximate::cos, x, __builtin_cos(double(x)), sin_error(x)));
}

}  // namespace quern::emu
