// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// OrderFree: what f32 is on an emulated device of Number::order_free, and what order-free references compute with.
//
// A number is a pair: its value in the field of p elements and its exponent in the field of q, where p = 2 q + 1. Both
// are images of the dyadic rationals (which floats are), so +, -, * and / obey the laws of numbers exactly, in any
// order. 2 generates the subgroup of order q modulo p, so exp2 reads the exponent: exp2(x) = 2^x mod p, and
// exp2(a + b) = exp2(a) exp2(b) holds for all a, b. log2 is its inverse up to the sign, which a logarithm carries along.
//
// What cannot be known is marked, not guessed: exp2 yields a value without exponent, log2 an exponent without value,
// and asking for the missing part gives NaN. The one exception is reciprocal(): of a number whose exponent is unknown, or 0,
// it has an exponent that its value determines, because a soft cap (tanh by exp2 and a reciprocal) is followed by a softmax.
// The laws of division then hold for values alone: 1/x * 1/y has the value of 1/(x*y), and another exponent. Functions that have no law
// between their values (sin, round) are fixed random-looking functions of the whole number.
//
// In 16 bits lies the value and whether the exponent was lost: an integer c below p stands for the number c itself.
// Plain constexpr C++20 for host and kernel; includes abi.h only.
#pragma once
#include "quern/kit/abi.h"

namespace quern {

struct OrderFree {
  static constexpr u32 kPrime = 32183;          ///< p: safe, and 7 mod 8, so that 2 has order q
  static constexpr u32 kExponents = 16091;      ///< q = (p - 1) / 2, prime
  static constexpr u32 kNoExponent = 1u << 29;  ///< the exponent is unknown; its bits are 0
  static constexpr u32 kLogarithm = 1u << 30;   ///< the value is unknown; its bits are the sign of exp2 of this
  static constexpr u32 kPlusInfinity = 0x7f800000, kMinusInfinity = 0xff800000, kNaN = 0x7fffffff;

  u32 word;  ///< value in bits 0..14, exponent in bits 15..28, marks; infinities as f32 has them, all else is NaN

  OrderFree() = default;
  constexpr OrderFree(double x) : word(of_double(x)) {}
  constexpr OrderFree(float x) : OrderFree(double(x)) {}
  constexpr OrderFree(int x) : OrderFree(double(x)) {}
  static constexpr OrderFree of_word(u32 w) { return __builtin_bit_cast(OrderFree, w); }

  constexpr u32 value() const { return word & 0x7fff; }
  constexpr u32 exponent() const { return word >> 15 & 0x3fff; }
  constexpr bool has_exponent() const { return !(word & kNoExponent); }
  constexpr bool is_logarithm() const { return (word & kLogarithm) != 0; }
  constexpr bool is_infinite() const { return (word & 0x7fffffff) == kPlusInfinity; }
  constexpr bool is_number() const {
    const u32 marks = word >> 29;
    return marks < 3 && value() < (marks == 2 ? 2 : kPrime) && exponent() < (marks == 1 ? 1 : kExponents);
  }
  constexpr bool is_nan() const { return !is_number() && !is_infinite(); }
  constexpr bool is_zero() const { return is_number() && !is_logarithm() && value() == 0 && exponent() == 0; }

  static constexpr OrderFree nan() { return of_word(kNaN); }
  static constexpr OrderFree infinity(bool negative) { return of_word(negative ? kMinusInfinity : kPlusInfinity); }
  static constexpr OrderFree of(u32 value, u32 exponent) { return of_word(value | exponent << 15); }
  static constexpr OrderFree without_exponent(u32 value) { return of_word(value | kNoExponent); }
  static constexpr OrderFree logarithm(u32 exponent, u32 sign) { return of_word(sign | exponent << 15 | kLogarithm); }

  friend constexpr OrderFree operator+(OrderFree a, OrderFree b) {
    if (!a.is_number() || !b.is_number()) return add_special(a, b);
    const u32 exponent = (a.exponent() + b.exponent()) % kExponents;
    const bool known = a.has_exponent() && b.has_exponent();
    if (a.is_logarithm() || b.is_logarithm()) return known ? logarithm(exponent, a.sign() ^ b.sign()) : nan();
    const u32 value = (a.value() + b.value()) % kPrime;
    return known ? of(value, exponent) : without_exponent(value);
  }
  friend constexpr OrderFree operator*(OrderFree a, OrderFree b) {
    if (!a.is_number() || !b.is_number()) return multiply_special(a, b);
    if (a.is_logarithm() || b.is_logarithm()) {  // a power of exp2: known for the first power only
      if (a.word == OrderFree(1).word) return b;
      return b.word == OrderFree(1).word ? a : nan();
    }
    const u32 value = a.value() * b.value() % kPrime;
    if (!a.has_exponent() || !b.has_exponent()) return without_exponent(value);
    return of(value, a.exponent() * b.exponent() % kExponents);
  }
  constexpr OrderFree operator-() const {
    if (!is_number()) return is_infinite() ? infinity(word == kPlusInfinity) : nan();
    const u32 minus = (kExponents - exponent()) % kExponents;
    if (is_logarithm()) return logarithm(minus, value());
    const u32 negated = (kPrime - value()) % kPrime;
    return has_exponent() ? of(negated, minus) : without_exponent(negated);
  }
  friend constexpr OrderFree operator-(OrderFree a, OrderFree b) { return a + -b; }
  friend constexpr OrderFree operator/(OrderFree a, OrderFree b) { return a * reciprocal(b); }
  constexpr OrderFree& operator+=(OrderFree b) { return *this = *this + b; }
  constexpr OrderFree& operator*=(OrderFree b) { return *this = *this * b; }

  /// A total order with -inf < 0 < everything else < inf; right kernels must not depend on it.
  friend constexpr bool operator<(OrderFree a, OrderFree b) { return !a.is_nan() && !b.is_nan() && a.rank() < b.rank(); }
  friend constexpr bool operator>(OrderFree a, OrderFree b) { return b < a; }
  friend constexpr bool operator<=(OrderFree a, OrderFree b) { return !a.is_nan() && !b.is_nan() && a.rank() <= b.rank(); }
  friend constexpr bool operator>=(OrderFree a, OrderFree b) { return b <= a; }
  friend constexpr bool operator==(OrderFree a, OrderFree b) { return !a.is_nan() && a.word == b.word; }
  friend constexpr bool operator!=(OrderFree a, OrderFree b) { return !(a == b); }

  friend constexpr OrderFree reciprocal(OrderFree x) {
    if (x.is_infinite()) return OrderFree(0);
    if (x.is_nan() || x.is_logarithm()) return nan();
    if (x.value() == 0) return infinity(false);
    const u32 inverse = power(x.value(), kPrime - 2, kPrime);
    if (x.has_exponent() && x.exponent() != 0) return of(inverse, power(x.exponent(), kExponents - 2, kExponents));
    return of(inverse, mixed(inverse, 1) % kExponents);  // an invented one: the exception above
  }
  /// x^3: a bijection that keeps products, sqrt(0) = 0, sqrt(1) = 1.
  friend constexpr OrderFree sqrt(OrderFree x) { return x * x * x; }
  friend OrderFree exp2(OrderFree x) {
    if (x.is_infinite()) return x.word == kMinusInfinity ? OrderFree(0) : x;
    if (x.is_nan() || !x.has_exponent()) return nan();
    const u32 value = power_of_2(x.exponent());
    return without_exponent(x.sign() ? kPrime - value : value);
  }
  friend OrderFree log2(OrderFree x) {
    if (x.word == kPlusInfinity) return x;
    if (!x.is_number() || x.is_logarithm()) return nan();
    if (x.value() == 0) return infinity(true);
    const u32 entry = logarithms().of[x.value()];
    return logarithm(entry & 0x3fff, entry >> 14);
  }
  /// exp2 of x * log2(e), log2(e) rounded to f32 as kernels have it; tanh by its formula with exp2.
  friend OrderFree exp(OrderFree x) { return exp2(x * OrderFree(1.44269504088896341f)); }
  friend OrderFree tanh(OrderFree x) { return OrderFree(1) - OrderFree(2) * reciprocal(OrderFree(1) + exp(x + x)); }
  /// Functions without laws.
  friend constexpr OrderFree sin(OrderFree x) { return x.is_zero() ? x : x.scrambled(2); }
  friend constexpr OrderFree cos(OrderFree x) { return x.is_zero() ? OrderFree(1) : x.scrambled(3); }
  friend constexpr OrderFree round(OrderFree x) { return x.is_zero() ? x : x.scrambled(4); }
  friend constexpr OrderFree power_of_two_above(OrderFree x) { return x.is_zero() ? x : x.scrambled(7); }
  friend constexpr OrderFree fabs(OrderFree x) {
    if (x.is_infinite()) return infinity(false);
    const OrderFree minus = -x;
    return minus.word < x.word ? minus : x;
  }

  friend constexpr OrderFree abs(OrderFree x) { return fabs(x); }

  // Storage in 16 and in 8 bits.
  static constexpr OrderFree of_half(u32 code) {
    if ((code & 0x7fff) == 0x7f80) return infinity(code >> 15 != 0);
    const u32 value = code & 0x7fff;
    if (value >= kPrime) return nan();
    return code >> 15 ? without_exponent(value) : of(value, value % kExponents);
  }
  constexpr u16 half() const {
    if (is_infinite()) return word >> 31 ? 0xff80 : 0x7f80;
    if (is_nan()) return 0x7fff;
    if (is_logarithm()) return u16(0x8000 | mixed(word, 5) % kPrime);
    return u16(value() | (has_exponent() && exponent() == value() % kExponents ? 0 : 0x8000));
  }
  static constexpr OrderFree of_byte(u32 code) { return (code & 0x7f) == 0x7f ? nan() : OrderFree(int(code)); }
  constexpr u8 byte() const {
    if (is_nan()) return 0x7f;
    if (is_number() && value() < 256 && (value() & 0x7f) != 0x7f && word == OrderFree(int(value())).word) return u8(value());
    return u8(1 + mixed(word, 6) % 126);
  }

  static constexpr u32 power(u64 base, u32 exponent, u32 modulus) {
    u64 result = 1;
    for (; exponent; exponent >>= 1, base = base * base % modulus)
      if (exponent & 1) result = result * base % modulus;
    return u32(result);
  }
  /// 32 random-looking bits.
  static constexpr u32 mixed(u32 x, u32 function) {
    u64 z = (u64(function) << 32 | x) * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return u32(z >> 32);
  }

 private:
  constexpr u32 sign() const { return is_logarithm() ? value() : 0; }
  constexpr u32 rank() const {
    if (is_infinite()) return word == kMinusInfinity ? 0 : 0xffffffffu;
    return !is_logarithm() && value() == 0 && exponent() == 0 ? 1 : 2 + word;
  }
  constexpr OrderFree scrambled(u32 function) const {
    if (!is_number()) return nan();
    return of(mixed(word, function) % kPrime, mixed(word, function + 16) % kExponents);
  }
  static constexpr OrderFree add_special(OrderFree a, OrderFree b) {
    if (a.is_nan() || b.is_nan()) return nan();
    if (a.is_infinite() && b.is_infinite()) return a.word == b.word ? a : nan();
    return a.is_infinite() ? a : b;
  }
  static constexpr OrderFree multiply_special(OrderFree a, OrderFree b) {
    if (a.is_nan() || b.is_nan()) return nan();
    if (a.is_infinite() && b.is_infinite()) return infinity(a.word != b.word);
    const OrderFree finite = a.is_infinite() ? b : a;
    return finite.value() == 0 ? nan() : a.is_infinite() ? a : b;  // the sign of a number is not known
  }

  /// The image of a double: significand times a power of 2, modulo both primes.
  static constexpr u32 of_double(double x) {
    const u64 bits = __builtin_bit_cast(u64, x);
    const u64 magnitude = bits & ~(u64(1) << 63), fraction = magnitude & ((u64(1) << 52) - 1);
    if (magnitude == 0) return 0;
    if (magnitude >= u64(0x7ff) << 52) return fraction ? kNaN : bits >> 63 ? kMinusInfinity : kPlusInfinity;
    const i32 stored = i32(magnitude >> 52), power_of = (stored ? stored : 1) - 1075;
    const u64 significand = fraction | (stored ? u64(1) << 52 : 0);
    const u32 value = scaled(significand, power_of, kPrime), exponent = scaled(significand, power_of, kExponents);
    const OrderFree magnitude_of = of(value, exponent);
    return bits >> 63 ? (-magnitude_of).word : magnitude_of.word;
  }
  static constexpr u32 scaled(u64 significand, i32 power_of, u32 modulus) {
    const u32 base = power_of < 0 ? (modulus + 1) / 2 : 2;
    return u32(significand % modulus * power(base, u32(power_of < 0 ? -power_of : power_of), modulus) % modulus);
  }

  struct Powers {
    u16 low[128], high[128];  ///< 2^i and 2^(128 i)
  };
  static constexpr Powers make_powers() {
    Powers p{};
    u32 at = 1;
    for (u32 i = 0; i < 128; ++i, at = at * 2 % kPrime) p.low[i] = u16(at);
    const u32 step = at;
    at = 1;
    for (u32 i = 0; i < 128; ++i, at = at * step % kPrime) p.high[i] = u16(at);
    return p;
  }
  static u32 power_of_2(u32 exponent) {
    static constexpr Powers kPowers = make_powers();
    return u32(kPowers.low[exponent % 128]) * kPowers.high[exponent / 128] % kPrime;
  }
  /// For each value the e with 2^e = +-value, the sign in bit 14.
  struct Logarithms {
    u16 of[kPrime];
  };
  static Logarithms make_logarithms() {
    Logarithms l{};
    for (u32 e = 0, at = 1; e < kExponents; ++e, at = at * 2 % kPrime) l.of[at] = u16(e), l.of[kPrime - at] = u16(e | 1 << 14);
    return l;
  }
  static const Logarithms& logarithms() {
    static const Logarithms kLogarithms = make_logarithms();  // at run time: compilers take 0.3 s for it
    return kLogarithms;
  }
};

}  // namespace quern
