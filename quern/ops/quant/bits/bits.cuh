// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Eight bytes become the eight bits of one.
#pragma once
#include "quern/kit/kit.cuh"
#include "quern/ops/quant/bit_order_spec.h"

namespace quern::quant {

/// Which of the four bytes of a word are not 0, as four bits: byte i is bit i (little) or 3 - i (big).
template <BitOrder kOrder> QN_DEVICE u32 nonzero_bytes(u32 word) {
  const u32 ones = ((((word & 0x7f7f7f7fu) + 0x7f7f7f7fu) | word) & 0x80808080u) >> 7;  // bit 0 of each byte that is not 0
  // The product has each of the four once in bits 24 to 27; its other terms are at distinct bits, so that nothing carries
  return (ones * (kOrder == BitOrder::little ? 0x01020408u : 0x08040201u)) >> 24 & 15;
}

/// The elements 0 to 3 and 4 to 7 of a byte.
template <BitOrder kOrder> QN_DEVICE u8 packed_byte(u32x2 elements) {
  const u32 first = nonzero_bytes<kOrder>(elements.x), second = nonzero_bytes<kOrder>(elements.y);
  return u8(kOrder == BitOrder::little ? first | second << 4 : first << 4 | second);
}

/// `count` elements from `x` on, at most 8; the others are 0.
QN_DEVICE u32x2 load_elements(const u8* x, i64 count) {
  u32x2 elements{0, 0};
  QN_UNROLL
  for (int i = 0; i < 8; ++i) {
    if (i >= count) continue;
    const u32 element = u32(ptx::ld_global<u8>(x + i)) << 8 * (i % 4);
    if (i < 4) elements.x |= element;
    else elements.y |= element;
  }
  return elements;
}

}  // namespace quern::quant
