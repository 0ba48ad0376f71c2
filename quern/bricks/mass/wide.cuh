// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Unsigned integers of 128 bits in two words: NVRTC has none by default.
#pragma once
#include "quern/kit/kit.cuh"

namespace quern {

struct U128 {
  u64 low, high;
};

QN_DEVICE U128 operator+(U128 a, U128 b) {
  const u64 low = a.low + b.low;
  return {low, a.high + b.high + (low < a.low)};
}
/// a >= b.
QN_DEVICE U128 operator-(U128 a, U128 b) { return {a.low - b.low, a.high - b.high - (a.low < b.low)}; }
QN_DEVICE bool operator<(U128 a, U128 b) { return a.high < b.high || (a.high == b.high && a.low < b.low); }
QN_DEVICE bool operator<=(U128 a, U128 b) { return !(b < a); }
QN_DEVICE bool is_zero(U128 a) { return (a.low | a.high) == 0; }

/// a * 2^by modulo 2^128, 0 <= by < 128.
QN_DEVICE U128 shifted_left(U128 a, int by) {
  if (by == 0) return a;
  if (by >= 64) return {0, a.low << (by - 64)};
  return {a.low << by, a.high << by | a.low >> (64 - by)};
}
/// floor(a / 2^by), by >= 0.
QN_DEVICE U128 shifted_right(U128 a, int by) {
  if (by == 0) return a;
  if (by >= 128) return {0, 0};
  if (by >= 64) return {a.high >> (by - 64), 0};
  return {a.low >> by | a.high << (64 - by), a.high >> by};
}
/// ceil(a / 2^by), by >= 0.
QN_DEVICE U128 shifted_right_up(U128 a, int by) {
  const U128 down = shifted_right(a, by);
  const U128 back = by >= 128 ? U128{0, 0} : shifted_left(down, by);
  const bool exact = back.low == a.low && back.high == a.high;
  return exact ? down : down + U128{1, 0};
}

QN_DEVICE U128 product(u64 a, u64 b) {
  const u64 a0 = u32(a), a1 = a >> 32, b0 = u32(b), b1 = b >> 32;
  const u64 low = a0 * b0, middle = a1 * b0 + (low >> 32), other = a0 * b1 + u32(middle);
  return {other << 32 | u32(low), a1 * b1 + (middle >> 32) + (other >> 32)};
}
/// a * b modulo 2^128.
QN_DEVICE U128 product(U128 a, u64 b) {
  const U128 low = product(a.low, b);
  return {low.low, low.high + a.high * b};
}
/// floor(u * a / 2^64), exact for every a.
QN_DEVICE U128 scaled_by_bits(u64 u, U128 a) { return product(u, a.high) + U128{product(u, a.low).high, 0}; }

}  // namespace quern
