// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// 9.7.3 floating-point instructions. The approximations flush subnormals.
#pragma once
#include "quern/kit/ptx/number.cuh"

namespace quern::ptx {

// 9.7.3.21 ex2, 9.7.3.20 lg2, 9.7.3.13 rcp, 9.7.3.16 rsqrt, 9.7.3.22 tanh, 9.7.3.15 sqrt, 9.7.3.8 div, 9.7.3.6 fma
QN_DEVICE f32 exp2_approx(f32 x) {
  f32 y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
QN_DEVICE f32 log2_approx(f32 x) {
  f32 y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
QN_DEVICE f32 rcp_approx(f32 x) {
  f32 y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
QN_DEVICE f32 rsqrt_approx(f32 x) {
  f32 y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
/// PTX ISA, cvt: to the nearest integer, ties to even.
QN_DEVICE f32 round(f32 x) {
  f32 y;
  asm("cvt.rni.f32.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
/// PTX ISA, sin, cos: absolute error 2^-20.5 for |x| <= 2 pi, 2^-14.7 up to 100 pi.
QN_DEVICE f32 sin_approx(f32 x) {
  f32 y;
  asm("sin.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
QN_DEVICE f32 cos_approx(f32 x) {
  f32 y;
  asm("cos.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
QN_DEVICE f32 tanh_approx(f32 x) {
  f32 y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
QN_DEVICE f32 sqrt(f32 x) {
  f32 y;
  asm("sqrt.rn.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
QN_DEVICE f32 div(f32 a, f32 b) {
  f32 y;
  asm("div.rn.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
QN_DEVICE f32 fma(f32 a, f32 b, f32 c) {
  f32 y;
  asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(y) : "f"(a), "f"(b), "f"(c));
  return y;
}
/// The operand that is not NaN, if one is (9.7.3.12 max, 9.7.3.11 min, 9.7.3.9 abs).
QN_DEVICE f32 fmax(f32 a, f32 b) {
  f32 y;
  asm("max.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
QN_DEVICE f32 fmin(f32 a, f32 b) {
  f32 y;
  asm("min.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
/// NaN where an operand is NaN.
QN_DEVICE f32 fmax_nan(f32 a, f32 b) {
  f32 y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
QN_DEVICE f32 fabs(f32 x) { return f32_of_bits(bits_of(x) & 0x7fffffff); }
/// Accurate sine and cosine of an angle in radians: the compiler's built-in function, not an instruction.
QN_DEVICE void sincos(f32 radians, f32& sine, f32& cosine) { ::sincosf(radians, &sine, &cosine); }

}  // namespace quern::ptx
