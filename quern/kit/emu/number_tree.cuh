// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// f32 names the expression that made it: two results are equal when the same operations met the same operands in the same
// order. Only laws that hold bit for bit in IEEE arithmetic are applied: a + b = b + a, x + 0 = x, 1 x = x, 0 x = 0,
// x - x = 0, signs, and max in any order. An mma is one operation of its addend and its products in the order of k.
//
// Number::tree: a word is a hash of the expression. Number::graph: it is a constant, or a NaN whose payload is the number
// of a node that the runtime keeps. In both, bit 31 is the sign; in both, constants look like floats.
#pragma once
#include "quern/kit/emu/entry.cuh"

namespace quern {

struct Expression {
  static constexpr u32 kInfinity = 0x7f800000, kNaN = 0x7fffffff, kOne = 0x3f800000, kSign = 0x80000000;
  u32 word;

  Expression() = default;
  constexpr Expression(float x) : word(__builtin_bit_cast(u32, x)) {}
  constexpr Expression(int x) : Expression(float(x)) {}
  static constexpr Expression of_word(u32 w) { return __builtin_bit_cast(Expression, w); }

  constexpr u32 magnitude() const { return word & ~kSign; }
  constexpr u32 sign() const { return word & kSign; }
  constexpr bool is_zero() const { return magnitude() == 0; }
  constexpr bool is_infinite() const { return magnitude() == kInfinity; }
  constexpr bool is_nan() const { return magnitude() == kNaN; }
  /// A total order with -inf < 0 < everything else < inf.
  constexpr u32 rank() const {
    if (is_infinite()) return sign() ? 0 : 0xffffffffu;
    return is_zero() ? 1 : 2 + magnitude() + (sign() >> 31);
  }
  constexpr Expression operator-() const { return of_word(word ^ kSign); }
  friend constexpr bool operator<(Expression a, Expression b) { return !a.is_nan() && !b.is_nan() && a.rank() < b.rank(); }
  friend constexpr bool operator>(Expression a, Expression b) { return b < a; }
  friend constexpr bool operator<=(Expression a, Expression b) { return !a.is_nan() && !b.is_nan() && !(b < a); }
  friend constexpr bool operator>=(Expression a, Expression b) { return b <= a; }
  friend constexpr bool operator==(Expression a, Expression b) {
    return !a.is_nan() && !b.is_nan() && (a.word == b.word || (a.is_zero() && b.is_zero()));
  }
  friend constexpr bool operator!=(Expression a, Expression b) { return !(a == b); }
};
using f32 = Expression;

}  // namespace quern

#include "quern/kit/emu/number_words.cuh"

namespace quern {
namespace emu {

QN_DEVICE u32 hash_words(u32 op, u32 a, u32 b) {
  u64 z = (u64(a) << 32 | b) + op * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return u32(z >> 33);
}
/// The expression op(a, b), never one of the special words.
QN_DEVICE f32 expression(NumberOp op, u32 a, u32 b) {
#if QN_EMU_NUMBER == 2
  const u32 word = hash_words(u32(op), a, b);
  const bool special = word == 0 || word == f32::kInfinity || word == f32::kNaN || word == f32::kOne;
  return f32::of_word(special ? word ^ 0x5a5a : word);
#else
  return f32::of_word(current()->runtime->number(op, a, b));
#endif
}
/// a + b, or a rounding of an exact product and b; -(a + b) is (-a) + (-b).
QN_DEVICE f32 sum_of(NumberOp op, f32 a, f32 b, bool commutes) {
  if (a.is_nan() || b.is_nan()) return f32::of_word(f32::kNaN);
  if (a.is_infinite() || b.is_infinite()) {
    if (a.is_infinite() && b.is_infinite() && a.word != b.word) return f32::of_word(f32::kNaN);
    return a.is_infinite() ? a : b;
  }
  if (a.is_zero()) return b;
  if (b.is_zero()) return a;
  if (commutes && a.word == (b.word ^ f32::kSign)) return f32(0.f);
  if (commutes && b.magnitude() < a.magnitude()) return sum_of(op, b, a, true);
  const u32 sign = a.sign();
  return f32::of_word(expression(op, a.word ^ sign, b.word ^ sign).word ^ sign);
}
QN_DEVICE f32 function_of(NumberOp op, f32 x) { return x.is_nan() ? x : expression(op, x.word, 0); }

}  // namespace emu

QN_DEVICE f32 operator+(f32 a, f32 b) { return emu::sum_of(emu::NumberOp::add, a, b, true); }
QN_DEVICE f32 operator-(f32 a, f32 b) { return a + -b; }
QN_DEVICE f32 operator*(f32 a, f32 b) {
  const u32 sign = a.sign() ^ b.sign();
  const auto with_sign = [&](f32 x) { return f32::of_word(x.magnitude() | sign); };
  if (a.is_nan() || b.is_nan()) return f32::of_word(f32::kNaN);
  if (a.is_zero() || b.is_zero()) return a.is_infinite() || b.is_infinite() ? f32::of_word(f32::kNaN) : f32(0.f);
  if (a.is_infinite() || b.is_infinite()) return f32::of_word(f32::kInfinity | sign);
  if (a.magnitude() == f32::kOne) return with_sign(b);
  if (b.magnitude() == f32::kOne) return with_sign(a);
  return with_sign(emu::expression(emu::NumberOp::multiply, min_of(a.magnitude(), b.magnitude()), max_of(a.magnitude(), b.magnitude())));
}
QN_DEVICE f32 operator/(f32 a, f32 b) {
  const u32 sign = a.sign() ^ b.sign();
  if (a.is_nan() || b.is_nan()) return f32::of_word(f32::kNaN);
  if (b.is_zero()) return f32::of_word(a.is_zero() ? f32::kNaN : f32::kInfinity | sign);
  if (a.is_zero() || b.is_infinite()) return f32(0.f);
  if (a.is_infinite()) return f32::of_word(f32::kInfinity | sign);
  return f32::of_word(emu::expression(emu::NumberOp::divide, a.magnitude(), b.magnitude()).word | sign);
}
QN_DEVICE f32& operator+=(f32& a, f32 b) { return a = a + b; }

namespace emu {

QN_DEVICE f32 number_sqrt(f32 x) { return function_of(NumberOp::sqrt, x); }
QN_DEVICE f32 number_rsqrt(f32 x) { return function_of(NumberOp::rsqrt, x); }
QN_DEVICE f32 number_rcp(f32 x) { return x.is_zero() || x.is_infinite() ? f32(1.f) / x : function_of(NumberOp::reciprocal, x); }
QN_DEVICE f32 number_exp2(f32 x) {
  if (x.is_zero()) return f32(1.f);
  if (x.is_infinite()) return x.sign() ? f32(0.f) : x;
  return function_of(NumberOp::exp2, x);
}
QN_DEVICE f32 number_log2(f32 x) {
  if (x.is_zero()) return f32::of_word(f32::kInfinity | f32::kSign);
  if (x.word == f32::kOne) return f32(0.f);
  return x.is_infinite() ? x : function_of(NumberOp::log2, x);
}
QN_DEVICE f32 number_tanh(f32 x) { return x.is_zero() ? x : function_of(NumberOp::tanh, x); }
QN_DEVICE f32 number_sin(f32 x) { return x.is_zero() ? x : function_of(NumberOp::sin, x); }
QN_DEVICE f32 number_cos(f32 x) { return x.is_zero() ? f32(1.f) : function_of(NumberOp::cos, x); }
QN_DEVICE void number_sincos(f32 x, f32& sine, f32& cosine) { sine = number_sin(x), cosine = number_cos(x); }
QN_DEVICE f32 number_round(f32 x) { return x.is_zero() ? x : function_of(NumberOp::round, x); }
QN_DEVICE f32 number_power_of_two_above(f32 x) { return x.is_zero() || x.is_infinite() ? x : function_of(NumberOp::power_of_two_above, x); }
QN_DEVICE f32 number_abs(f32 x) { return f32::of_word(x.magnitude()); }
QN_DEVICE f32 number_fma(f32 a, f32 b, f32 c) { return sum_of(NumberOp::fma, a * b, c, false); }

// 16 and 8 bits hold 15 and 7 bits of a hash and the sign, or the number of what was stored there.
QN_DEVICE f32 widen_half(u32 half) {
  const u32 code = half & 0x7fff, sign = (half & 0x8000) << 16;
  if (code == 0x7fff) return f32::of_word(f32::kNaN);
  if (code == 0) return f32::of_word(sign);
  if (code == 0x7f80) return f32::of_word(f32::kInfinity | sign);
#if QN_EMU_NUMBER == 2
  return f32::of_word(code << 16 | (hash_words(u32(NumberOp::widen), code, 0) & 0xffff) | sign);
#else
  return f32::of_word(expression(NumberOp::widen, code, 0).word | sign);
#endif
}
QN_DEVICE u16 narrow_half(f32 x) {
  const u32 sign = x.sign() >> 16;
  if (x.is_nan()) return 0x7fff;
  if (x.is_zero()) return u16(sign);
  if (x.is_infinite()) return u16(0x7f80 | sign);
#if QN_EMU_NUMBER == 2
  const u32 code = x.magnitude() >> 16;  // what was widened keeps its bits
  if (code < 0x7f00 && widen_half(code).word == x.magnitude()) return u16(code | sign);
  return u16((1 + hash_words(u32(NumberOp::narrow), x.magnitude(), 0) % 0x7eff) | sign);
#else
  return u16(expression(NumberOp::narrow, x.magnitude(), 0).word | sign);
#endif
}
QN_DEVICE f32 widen_byte(u32 byte) {
  if ((byte & 0x7f) == 0x7f) return f32::of_word(f32::kNaN);
  return (byte & 0x7f) == 0 ? f32(0.f) : f32::of_word(expression(NumberOp::widen, 0x10000 | (byte & 0x7f), 0).word | (byte & 0x80) << 24);
}
QN_DEVICE u8 narrow_byte(f32 x) {
  if (x.is_nan()) return 0x7f;
  return x.is_zero() ? 0 : u8((1 + hash_words(u32(NumberOp::narrow), x.magnitude(), 1) % 0x7e) | x.sign() >> 24);
}
QN_DEVICE f32 widen_bf16(u32 half) { return widen_half(half); }
QN_DEVICE f32 widen_f16(u32 half) { return widen_half(half); }
QN_DEVICE f32 widen_e4m3(u32 byte) { return widen_byte(byte); }
QN_DEVICE f32 widen_e5m2(u32 byte) { return widen_byte(byte); }
QN_DEVICE u16 narrow_bf16(f32 x) { return narrow_half(x); }
QN_DEVICE u16 narrow_f16(f32 x) { return narrow_half(x); }
QN_DEVICE u8 narrow_e4m3(f32 x) { return narrow_byte(x); }
QN_DEVICE u8 narrow_e5m2(f32 x) { return narrow_byte(x); }
QN_DEVICE u8 narrow_s8(f32 x) { return narrow_byte(x); }
QN_DEVICE u8 narrow_e8m0(f32 x) { return narrow_byte(x); }

/// d[16][8] += left[16][k] * right[k][8]. An element is one node: mma(its addend, the chain of its products that are not 0).
template <int k> QN_DEVICE void number_products(const f32 (*left)[k], const f32 (*right)[8], Row8* d) {
  for (u32 row = 0; row < 16; ++row)
    for (u32 c = 0; c < 8; ++c) {
      f32 products = 0.f;
      for (u32 x = 0; x < k; ++x) products = sum_of(NumberOp::products, products, left[row][x] * right[x][c], false);
      d[row].of[c] = sum_of(NumberOp::mma, products, d[row].of[c], false);
    }
}

/// See number_f32.cuh.
template <int k, bool is_bf16>
QN_DEVICE void number_mma(const Words8* a, const Words8* b, Row8* d) {
  f32 left[16][k], right[k][8];
  for (u32 x = 0; x < k; ++x)
    for (u32 c = 0; c < 8; ++c) right[x][c] = widen_half(x % 2 ? b[x / 2][c] >> 16 : b[x / 2][c] & 0xffff);
  for (u32 row = 0; row < 16; ++row)
    for (u32 x = 0; x < k; ++x) left[row][x] = widen_half(x % 2 ? a[row][x / 2] >> 16 : a[row][x / 2] & 0xffff);
  number_products<k>(left, right, d);
}

}  // namespace emu
}  // namespace quern
