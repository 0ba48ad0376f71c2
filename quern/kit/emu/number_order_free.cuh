// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// f32 is OrderFree: sums, products and rescalings give the same bits in every order (Number::order_free).
#pragma once
#include "quern/kit/emu/entry.cuh"
#include "quern/kit/order_free.h"

namespace quern {

using f32 = OrderFree;

}  // namespace quern

#include "quern/kit/emu/number_words.cuh"

namespace quern {
namespace emu {

QN_DEVICE f32 number_sqrt(f32 x) { return sqrt(x); }
QN_DEVICE f32 number_rsqrt(f32 x) { return reciprocal(sqrt(x)); }
QN_DEVICE f32 number_rcp(f32 x) { return reciprocal(x); }
QN_DEVICE f32 number_exp2(f32 x) { return exp2(x); }
QN_DEVICE f32 number_log2(f32 x) { return log2(x); }
QN_DEVICE f32 number_tanh(f32 x) { return tanh(x); }
QN_DEVICE f32 number_sin(f32 x) { return sin(x); }
QN_DEVICE f32 number_cos(f32 x) { return cos(x); }
QN_DEVICE void number_sincos(f32 x, f32& sine, f32& cosine) { sine = number_sin(x), cosine = number_cos(x); }
QN_DEVICE f32 number_round(f32 x) { return round(x); }
QN_DEVICE f32 number_abs(f32 x) { return fabs(x); }
QN_DEVICE f32 number_power_of_two_above(f32 x) { return power_of_two_above(x); }
QN_DEVICE f32 number_fma(f32 a, f32 b, f32 c) { return a * b + c; }

QN_DEVICE f32 widen_bf16(u32 half) { return f32::of_half(half); }
QN_DEVICE f32 widen_f16(u32 half) { return f32::of_half(half); }
QN_DEVICE f32 widen_e4m3(u32 byte) { return f32::of_byte(byte); }
QN_DEVICE f32 widen_e5m2(u32 byte) { return f32::of_byte(byte); }
QN_DEVICE u16 narrow_bf16(f32 x) { return x.half(); }
QN_DEVICE u16 narrow_f16(f32 x) { return x.half(); }
QN_DEVICE u8 narrow_e4m3(f32 x) { return x.byte(); }
QN_DEVICE u8 narrow_e5m2(f32 x) { return x.byte(); }
QN_DEVICE u8 narrow_s8(f32 x) { return x.byte(); }
QN_DEVICE u8 narrow_e8m0(f32 x) { return x.byte(); }

/// Eight numbers as vectors; `plain` while all are finite and no logarithm.
struct Parts8 {
  Words8 value, exponent, lost;
  bool plain;
};
QN_DEVICE Parts8 parts8(const f32 (&x)[8]) {
  Parts8 parts;
  parts.plain = true;
  for (u32 i = 0; i < 8; ++i) {
    parts.value[i] = x[i].value(), parts.exponent[i] = x[i].exponent(), parts.lost[i] = x[i].word & f32::kNoExponent;
    parts.plain = parts.plain && x[i].is_number() && !x[i].is_logarithm();
  }
  return parts;
}
/// Congruent to x below 2^30: 2^15 = 585 modulo p, 2^14 = 293 modulo q. The result is below 2^25.
QN_DEVICE Words8 folded_value(Words8 x) { return (x >> 15) * (32768 - f32::kPrime) + (x & 32767); }
QN_DEVICE Words8 folded_exponent(Words8 x) { return (x >> 14) * (16384 - f32::kExponents) + (x & 16383); }

QN_DEVICE void widen_rows(const Words8* packed, u32 rows, f32 (*wide)[8]) {
  for (u32 j = 0; j < rows; ++j)
    for (u32 i = 0; i < 8; ++i) {
      wide[2 * j][i] = f32::of_half(packed[j][i] & 0xffff);
      wide[2 * j + 1][i] = f32::of_half(packed[j][i] >> 16);
    }
}

/// d[16][8] += left[16][k] * right[k][8]. Up to 32 folded products fit a word.
template <int k> QN_DEVICE void number_products(const f32 (*left)[k], const f32 (*right)[8], Row8* d) {
  static_assert(k <= 32);
  Parts8 columns[k];
  Words8 lost_column = {};
  bool plain = true;
  for (u32 x = 0; x < k; ++x) {
    columns[x] = parts8(right[x]);
    lost_column |= columns[x].lost, plain = plain && columns[x].plain;
  }
  for (u32 row = 0; row < 16; ++row) {
    bool plain_row = plain;
    u32 lost = 0;
    for (u32 x = 0; x < k; ++x) {
      plain_row = plain_row && left[row][x].is_number() && !left[row][x].is_logarithm();
      lost |= left[row][x].word & f32::kNoExponent;
    }
    const Parts8 before = parts8(d[row].of);
    if (!plain_row || !before.plain) {
      for (u32 c = 0; c < 8; ++c)
        for (u32 x = 0; x < k; ++x) d[row].of[c] += left[row][x] * right[x][c];
      continue;
    }
    Words8 value = before.value, exponent = before.exponent;
    const Words8 unknown = before.lost | lost_column | lost;
    for (u32 x = 0; x < k; ++x) {
      value += folded_value(columns[x].value * left[row][x].value());
      exponent += folded_exponent(columns[x].exponent * left[row][x].exponent());
    }
    for (u32 c = 0; c < 8; ++c)
      d[row].of[c] =
          unknown[c] ? f32::without_exponent(value[c] % f32::kPrime) : f32::of(value[c] % f32::kPrime, exponent[c] % f32::kExponents);
  }
}

/// See number_f32.cuh.
template <int k, bool is_bf16>
QN_DEVICE void number_mma(const Words8* a, const Words8* b, Row8* d) {
  f32 left[16][k], right[k][8];
  widen_rows(b, k / 2, right);
  for (u32 row = 0; row < 16; ++row)
    for (u32 x = 0; x < k; ++x) left[row][x] = f32::of_half(x % 2 ? a[row][x / 2] >> 16 : a[row][x / 2] & 0xffff);
  number_products<k>(left, right, d);
}

}  // namespace emu
}  // namespace quern
