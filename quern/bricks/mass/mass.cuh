// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// weight = 2^(logit * log2(e) / temperature) = mantissa * 2^(exponent - 23), an integer of 24 bits and an exponent
// mass   = mantissa * 2^(exponent - top + 60), top being the largest exponent of the row; 0 where that is no integer
// Sums of masses are integers, so they do not depend on their order. Every rounding is stated: products and sums are `fma`, which no
// compiler contracts with what is around it, and no approximate instruction is used. So all devices, plans and compilers make the same
// bits.
#pragma once
#include "quern/bricks/mass/mass_spec.h"
#include "quern/bricks/mass/wide.cuh"

namespace quern {

/// mantissa * 2^(exponent - 23); mantissa 0: nothing.
struct Weight {
  u32 mantissa;
  i32 exponent;
};

/// log2(e) / temperature as the sum of two f32.
struct LogitScale {
  f32 high, low;
};

/// Each operation is rounded once. temperature is finite and >= kGreedyTemperature.
QN_DEVICE LogitScale logit_scale(f32 temperature) {
  const f32 high = ptx::div(f32(kLog2eHigh), temperature);
  const f32 rest = ptx::fma(ptx::f32_of_bits(ptx::bits_of(high) ^ 0x80000000u), temperature, f32(kLog2eHigh));
  return {high, ptx::div(ptx::fma(rest, f32(1.f), f32(kLog2eLow)), temperature)};
}

/// 2^f, |f| <= 1/2.
QN_DEVICE f32 exp2_of_fraction(f32 f) {
  f32 y = f32(exp2_coefficient(kExp2Terms - 1));
  QN_UNROLL
  for (int power = kExp2Terms - 2; power >= 0; --power) y = ptx::fma(y, f, f32(exp2_coefficient(power)));
  return y;
}

/// Of a logit that is not NaN. |x| = |logit * log2(e) / temperature| is cut at 2^28, and what is cut has the exponent
/// 2^29: the correction of an exponent below the cut is far smaller, so weights ascend with logits. -inf weighs nothing, +inf more than all
/// that is finite.
QN_DEVICE Weight weight_of_logit(f32 logit, LogitScale scale) {
  const f32 product = ptx::fma(logit, scale.high, f32(-0.f));
  const bool within = ptx::fabs(product) < f32(kLogitReach);
  const f32 x = within ? logit : f32(0.f), whole = ptx::round(within ? product : f32(0.f));
  f32 fraction = ptx::fma(x, scale.high, ptx::f32_of_bits(ptx::bits_of(whole) ^ 0x80000000u));
  fraction = ptx::fma(x, scale.low, fraction);
  // Beyond 1/2 where |x| is above 2^23 or a neighbour of a half: rounded by the place of the last bit of 1.5 * 2^23
  const f32 shifted = ptx::fma(fraction, f32(1.f), f32(kRoundsToInteger)), more = ptx::fma(shifted, f32(1.f), f32(-kRoundsToInteger));
  fraction = ptx::fma(more, f32(-1.f), fraction);
  const u32 power = ptx::bits_of(exp2_of_fraction(fraction));
  Weight w{(power & 0x7fffffu) | 0x800000u,
           i32(whole) + i32(ptx::bits_of(shifted) - ptx::bits_of(f32(kRoundsToInteger))) + i32(power >> 23) - 127};
  if (!within) {
    const u32 bits = ptx::bits_of(logit);
    w.mantissa = bits == 0xff800000u ? 0 : 1u << 23;
    w.exponent = bits == 0x7f800000u ? kInfiniteWeight : bits >> 31 ? -kWeightReach : kWeightReach;
  }
  return w;
}

/// Of a probability, or anything that is in proportion to one: itself. It is not NaN and not below 0; +inf as above.
QN_DEVICE Weight weight_of_prob(f32 prob) {
  const u32 bits = ptx::bits_of(prob) & 0x7fffffffu, exponent = bits >> 23;
  if (exponent == 255) return {1u << 23, kInfiniteWeight};
  if (exponent == 0) return {bits, -126};
  return {(bits & 0x7fffffu) | 0x800000u, i32(exponent) - 127};
}

/// mantissa * 2^by, of 24 bits, by <= kMassWindow + 1; 0 where by < 0.
struct Mass {
  u32 mantissa;
  i32 by;
};
/// top is the exponent of the largest weight, or one below it: 2^f of a smaller f may be larger by the last bit.
QN_DEVICE Mass mass_of(Weight weight, i32 top) { return {weight.mantissa, weight.exponent - top + kMassWindow}; }
QN_DEVICE U128 wide(Mass m) { return m.by < 0 ? U128{0, 0} : shifted_left({m.mantissa, 0}, m.by); }

/// A sum of up to kMassesOfSum masses in two words, which cost a product of 32 bits each: of those with by < 30, and of the others, by
/// 2^30.
struct MassSum {
  u64 low, high;
};
constexpr int kMassSplit = 30, kMassesOfSum = 512;
static_assert(u64(kMassesOfSum) << (24 + kMassWindow + 1 - kMassSplit - 1) <= u64(1) << 63, "the larger word holds them");
QN_DEVICE void add(MassSum& sum, Mass m) {
  const u32 below = u32(m.by), above = u32(m.by) - u32(kMassSplit);
  sum.low += u64(m.mantissa) * (below < u32(kMassSplit) ? 1u << (below & 31) : 0u);
  sum.high += u64(m.mantissa) * (above <= u32(kMassWindow + 1 - kMassSplit) ? 1u << (above & 31) : 0u);
}
QN_DEVICE U128 wide(const MassSum& sum) { return U128{sum.low, 0} + shifted_left({sum.high, 0}, kMassSplit); }

/// ceil(p * total), at least 1, for p in (0, 1] and total < 2^104. p <= 0: 1.
QN_DEVICE U128 share_of(f32 p, U128 total) {
  const Weight w = weight_of_prob(p > f32(0.f) ? p : f32(0.f));
  const U128 share = shifted_right_up(product(total, w.mantissa), 23 - w.exponent);
  return is_zero(share) ? U128{1, 0} : share;
}

/// A total of masses rounded to 24 bits, to nearest and ties to even: mantissa * 2^power. reciprocal: 1 / mantissa, rounded to nearest.
struct RoundedTotal {
  f32 mantissa, reciprocal;
  i32 power;
};
QN_DEVICE RoundedTotal rounded_total(f32 mantissa, i32 power) { return {mantissa, ptx::div(f32(1.f), mantissa), power}; }
QN_DEVICE RoundedTotal rounded_total(U128 total) {
  int bits = 0;
  for (int step = 64; step > 0; step /= 2)
    if (!is_zero(shifted_right(total, bits + step))) bits += step;
  const int drop = bits > 23 ? bits - 23 : 0;
  u64 kept = shifted_right(total, drop).low;
  if (drop > 0) {
    const U128 rest = total - shifted_left({kept, 0}, drop), half = shifted_left({1, 0}, drop - 1);
    if (half < rest || (half <= rest && kept % 2 == 1)) ++kept;
  }
  return rounded_total(f32(float(kept)), drop);
}

/// mantissa / total.mantissa, rounded to nearest: the product with the reciprocal, and its remainder by the reciprocal once more
/// (Markstein, Computation of elementary functions on the IBM RISC System/6000 processor, 1990). That is the nearest unless all 24 bits of
/// the divisor are ones.
QN_DEVICE f32 quotient(f32 mantissa, RoundedTotal total) {
  if (total.mantissa == f32(16777215.f)) return ptx::div(mantissa, total.mantissa);
  const f32 near = ptx::fma(mantissa, total.reciprocal, f32(0.f));
  const f32 rest = ptx::fma(ptx::f32_of_bits(ptx::bits_of(near) ^ 0x80000000u), total.mantissa, mantissa);
  return ptx::fma(rest, total.reciprocal, near);
}

/// weight / total as f32: the quotient of the mantissas is rounded once, and once more where the result is subnormal. `total` is not 0 and
/// of masses with that top. A weight too small for a mass has a share too.
QN_DEVICE f32 share_of_total(Weight weight, i32 top, RoundedTotal total) {
  const i32 power = weight.exponent - top + kMassWindow - total.power;
  if (weight.mantissa == 0 || power < -200) return f32(0.f);
  const i32 first = max_of(power, -100), second = power - first;
  const f32 scaled = ptx::fma(quotient(f32(float(weight.mantissa)), total), ptx::f32_of_bits(u32(first + 127) << 23),
                              f32(0.f));  // the quotient is at least 2^-24
  return ptx::fma(scaled, ptx::f32_of_bits(u32(second + 127) << 23), f32(0.f));
}

}  // namespace quern
