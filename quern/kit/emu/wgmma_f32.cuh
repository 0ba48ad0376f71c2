// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The product of a wgmma when f32 is float. A thread's accumulators are computed eight registers at a time, in the order in
// which they lie on its stack: two columns of its first row, the same of its second, and again of the next eight columns. So
// the columns of B are laid out in that order, once for the 32 threads that share them.
#pragma once
#include "quern/kit/emu/convert.cuh"

namespace quern::emu {

using Halves8 = u16 __attribute__((vector_size(16), aligned(2)));
using Bytes8 = u8 __attribute__((vector_size(8), aligned(1)));
using Ints8 = i32 __attribute__((vector_size(32), aligned(32)));
using Floats4 = f32 __attribute__((vector_size(16), aligned(16)));

template <class T> QN_DEVICE Row8 widen8_of(const u8* elements) {
  if constexpr (sizeof(T) == 2) {
    const Words8 words = __builtin_convertvector(*reinterpret_cast<const Halves8*>(elements), Words8);
    return widen8<__is_same(T, bf16)>(words);
  } else {
    Row8 wide;
    for (u32 i = 0; i < 8; ++i) wide[i] = ptx::to_f32(T{elements[i]});
    return wide;
  }
}

/// Fraction bits that FP8 products and their sum keep beside the largest exponent on Hopper.
constexpr i32 kFp8FractionBits = 13;
/// Exponent that a zero counts with: a product with it is below every other, which begin at -28.
constexpr i32 kExponentOfZero = -60;
/// No sum is aligned to less, so that the scale is an f32.
constexpr i32 kLeastExponent = -100;

/// Exponent of a small number as the hardware aligns by: the stored one, of subnormals that of the smallest normal number.
template <class T> QN_DEVICE i32 fp8_exponent(u8 byte) {
  constexpr i32 mantissa = __is_same(T, e4m3) ? 3 : 2, bias = __is_same(T, e4m3) ? 7 : 15;
  const i32 stored = (byte & 0x7f) >> mantissa;
  return (byte & 0x7f) == 0 ? kExponentOfZero : (stored ? stored : 1) - bias;
}

/// The model of an FP8 instruction: eight results c + sum of a[i] * b[i], i < k. Tensor cores of Hopper do not add in f32:
/// they align the products and the addend to the largest exponent among them (of a product the sum of its factors'
/// exponents), drop what lies more than kFp8FractionBits behind it, towards zero, add what is left exactly, and drop the
/// result's bits behind the same number of fraction bits. So a long sum loses what f32 would keep, and kernels add partial
/// sums outside. ea, eb: exponents of a and b. special: an operand may be NaN or infinite.
template <int k>
inline __attribute__((always_inline)) Row8 fp8_sum(const Row8* a, const Row8* b, const Ints8* ea, const Ints8* eb, Row8 c, bool special) {
  const Ints8 c_bits = __builtin_bit_cast(Ints8, c);
  const Ints8 c_exponent = ((c_bits >> 23) & 255) - 127;
  Ints8 largest = c_exponent > kLeastExponent ? c_exponent : Ints8{} + kLeastExponent;
  for (u32 i = 0; i < k; ++i) {
    const Ints8 exponent = ea[i] + eb[i];
    largest = exponent > largest ? exponent : largest;
  }
  const Row8 unit = __builtin_bit_cast(Row8, (largest - kFp8FractionBits + 127) << 23);
  const Row8 scale = __builtin_bit_cast(Row8, (kFp8FractionBits - largest + 127) << 23);
  // In units of the last bit kept, products are below 2^15 and the sum of 33 is an exact f32. Without signs: NaN may overflow.
  Words8 sum = __builtin_bit_cast(Words8, __builtin_convertvector(c * scale, Ints8));
  for (u32 i = 0; i < k; ++i) sum += __builtin_bit_cast(Words8, __builtin_convertvector(a[i] * b[i] * scale, Ints8));
  const Row8 wide = __builtin_convertvector(__builtin_bit_cast(Ints8, sum), Row8) * unit;
  Ints8 bits = __builtin_bit_cast(Ints8, wide) & ~((1 << (23 - kFp8FractionBits)) - 1);
  bits = c_exponent == 128 ? c_bits : bits;
  if (__builtin_expect(special, 0)) {
    Row8 plain = c;
    for (u32 i = 0; i < k; ++i) plain += a[i] * b[i];
    bits = plain - plain == 0 ? bits : __builtin_bit_cast(Ints8, plain);
  }
  return __builtin_bit_cast(Row8, bits);
}

/// Operands of one wgmma, widened. Lies in the worker's scratch memory.
template <int k, int registers> struct WgmmaWide {
  static constexpr int kPadded = round_up(registers, 8);
  alignas(64) f32 a[64][k];
  alignas(64) f32 b[k][kPadded];  ///< of one thread of four: register i of the product with 1
  i32 a_exponent[64][k];          ///< 8-bit types only
  alignas(64) i32 b_exponent[k][kPadded];
};

/// A thread's two factors in the order of its registers.
template <class Vector, class Number> QN_DEVICE Vector in_rows(Number first, Number second) {
  return Vector{first, first, second, second, first, first, second, second};
}

/// Eight numbers anywhere. clang loses a vector type's smaller alignment in templates, so by copies.
inline __attribute__((always_inline)) Row8 row8_at(const f32* from) {
  Row8 row;
  __builtin_memcpy(&row, from, sizeof(row));
  return row;
}
inline __attribute__((always_inline)) void put_row8(f32* to, Row8 row) { __builtin_memcpy(to, &row, sizeof(row)); }

#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast")
/// d[64] += a * b. A product of 16-bit numbers is exact in f32, so fusing it with the sum changes nothing.
template <int k>
QN_UNWATCHED __attribute__((noinline)) static void wgmma_64_registers(f32* d, const Row8* a, const f32* b, u32 pitch, bool add) {
#if defined(__clang__)
#pragma clang fp contract(fast)
#endif
  Row8 d0{}, d1{}, d2{}, d3{}, d4{}, d5{}, d6{}, d7{};
  if (add) {
    d0 = row8_at(d), d1 = row8_at(d + 8), d2 = row8_at(d + 16), d3 = row8_at(d + 24);
    d4 = row8_at(d + 32), d5 = row8_at(d + 40), d6 = row8_at(d + 48), d7 = row8_at(d + 56);
  }
  for (u32 i = 0; i < k; ++i) {
    const Row8 factor = a[i];
    const Row8* from = reinterpret_cast<const Row8*>(b + i * pitch);
    d0 += factor * from[0], d1 += factor * from[1], d2 += factor * from[2], d3 += factor * from[3];
    d4 += factor * from[4], d5 += factor * from[5], d6 += factor * from[6], d7 += factor * from[7];
  }
  put_row8(d, d0), put_row8(d + 8, d1), put_row8(d + 16, d2), put_row8(d + 24, d3);
  put_row8(d + 32, d4), put_row8(d + 40, d5), put_row8(d + 48, d6), put_row8(d + 56, d7);
}
#pragma GCC pop_options

/// Eight registers, or the last four.
template <class A, int k, int registers>
QN_DEVICE void wgmma_8_registers(f32* d, int at, const Row8* a, const Ints8* ea, const WgmmaWide<k, registers>& wide, bool add,
                                 bool special) {
  const u32 bytes = registers - at >= 8 ? 32 : 16;
  Row8 sum{}, b[k];
  Ints8 eb[k];
  if (add) __builtin_memcpy(&sum, d + at, bytes);
  for (u32 i = 0; i < k; ++i) b[i] = *reinterpret_cast<const Row8*>(&wide.b[i][at]);
  if constexpr (sizeof(A) == 1) {
    for (u32 i = 0; i < k; ++i) eb[i] = *reinterpret_cast<const Ints8*>(&wide.b_exponent[i][at]);
    sum = fp8_sum<k>(a, b, ea, eb, sum, special);
  } else {
    for (u32 i = 0; i < k; ++i) sum += a[i] * b[i];
  }
  __builtin_memcpy(d + at, &sum, bytes);
}

/// Columns that threads 4 g + pair have: element e of rows 8 j + 2 pair, + 1 of B, twice.
template <class B, int k, int registers>
QN_DEVICE bool widen_columns(const u8 (*b)[kWgmmaRowBytes], u32 pair, WgmmaWide<k, registers>& wide) {
  bool special = false;
  for (u32 j = 0; j < registers / 4; ++j) {
    const u8 *first = b[8 * j + 2 * pair], *second = b[8 * j + 2 * pair + 1];
    for (u32 i = 0; i < k; i += 8) {
      const Row8 x = widen8_of<B>(first + i * sizeof(B)), y = widen8_of<B>(second + i * sizeof(B));
      for (u32 e = 0; e < 8; ++e) *reinterpret_cast<Floats4*>(&wide.b[i + e][4 * j]) = Floats4{x[e], y[e], x[e], y[e]};
      if constexpr (sizeof(B) == 1)
        for (u32 e = 0; e < 8; ++e) {
          i32* to = &wide.b_exponent[i + e][4 * j];
          to[0] = to[2] = fp8_exponent<B>(first[i + e]);
          to[1] = to[3] = fp8_exponent<B>(second[i + e]);
          special |= x[e] - x[e] != 0 || y[e] - y[e] != 0;
        }
    }
  }
  return special;
}

/// D of all threads: f32 registers, `registers` of them.
template <class A, class B, bool negative, int registers>
inline __attribute__((always_inline)) void number_wgmma(const WgmmaOperands& operands, f32* (&d)[128]) {
  constexpr int k = 32 / sizeof(A);
  auto& wide = *static_cast<WgmmaWide<k, registers>*>(operands.scratch);
  static_assert(sizeof(wide) <= kWgmmaScratchBytes);
  bool special_a = false;
  for (u32 row = 0; row < 64; ++row)
    for (u32 i = 0; i < k; i += 8) {
      const Row8 x = widen8_of<A>(operands.a[row] + i * sizeof(A));
      *reinterpret_cast<Row8*>(&wide.a[row][i]) = negative ? -x : x;
      if constexpr (sizeof(A) == 1)
        for (u32 e = 0; e < 8; ++e) {
          wide.a_exponent[row][i + e] = fp8_exponent<A>(operands.a[row][i + e]);
          special_a |= x[e] - x[e] != 0;
        }
    }
  for (u32 pair = 0; pair < 4; ++pair) {
    const bool special = widen_columns<B>(operands.b, pair, wide) || special_a;
    for (u32 lane = pair; lane < 128; lane += 4) {
      const u32 row = lane / 32 * 16 + lane % 32 / 4;
      Row8 a[k];
      Ints8 ea[sizeof(A) == 1 ? k : 1];
      for (u32 i = 0; i < k; ++i) a[i] = in_rows<Row8>(wide.a[row][i], wide.a[row + 8][i]);
      if constexpr (sizeof(A) == 1)
        for (u32 i = 0; i < k; ++i) ea[i] = in_rows<Ints8>(wide.a_exponent[row][i], wide.a_exponent[row + 8][i]);
      int at = 0;
      if constexpr (sizeof(A) == 2)
        for (; at + 64 <= registers; at += 64)
          wgmma_64_registers<k>(d[lane] + at, a, &wide.b[0][at], WgmmaWide<k, registers>::kPadded, operands.add);
      for (; at < registers; at += 8) wgmma_8_registers<A>(d[lane], at, a, ea, wide, operands.add, special);
    }
  }
}

}  // namespace quern::emu
