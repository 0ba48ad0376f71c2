// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Arithmetic that differs from C++'s operators.
#pragma once
#include "quern/kit/emu/number.cuh"

namespace quern::ptx {

QN_DEVICE f32 exp2_approx(f32 x) { return emu::number_exp2(x); }
QN_DEVICE f32 log2_approx(f32 x) { return emu::number_log2(x); }
QN_DEVICE f32 rcp_approx(f32 x) { return emu::number_rcp(x); }
QN_DEVICE f32 rsqrt_approx(f32 x) { return emu::number_rsqrt(x); }
QN_DEVICE f32 tanh_approx(f32 x) { return emu::number_tanh(x); }
QN_DEVICE f32 sqrt(f32 x) { return emu::number_sqrt(x); }
QN_DEVICE f32 div(f32 a, f32 b) { return a / b; }
QN_DEVICE f32 fma(f32 a, f32 b, f32 c) { return emu::number_fma(a, b, c); }
/// The operand that is not NaN, if one is.
QN_DEVICE f32 fmax(f32 a, f32 b) { return a < b || a != a ? b : a; }
QN_DEVICE f32 fmin(f32 a, f32 b) { return b < a || a != a ? b : a; }
/// NaN where an operand is NaN. Not as `a != a ? a : b != b ? b : ...`: of that clang 19 loses the largest of several magnitudes.
QN_DEVICE f32 fmax_nan(f32 a, f32 b) { return a < b || b != b ? b : a; }
QN_DEVICE f32 fabs(f32 x) { return emu::number_abs(x); }
/// To the nearest integer, ties to even.
QN_DEVICE f32 round(f32 x) { return emu::number_round(x); }
QN_DEVICE f32 sin_approx(f32 radians) { return emu::number_sin(radians); }
QN_DEVICE f32 cos_approx(f32 radians) { return emu::number_cos(radians); }
/// Accurate sine and cosine of an angle in radians.
QN_DEVICE void sincos(f32 radians, f32& sine, f32& cosine) { emu::number_sincos(radians, sine, cosine); }

}  // namespace quern::ptx
