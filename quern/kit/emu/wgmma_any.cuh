// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The product of a wgmma for numbers that are no floats: eight columns at a time, as those of mma.sync. An FP8 product is
// what it says, without the hardware's loss of bits.
#pragma once
#include "quern/kit/emu/convert.cuh"

namespace quern::emu {

template <class T> QN_DEVICE f32 widen_element(const u8* row, u32 i) {
  if constexpr (sizeof(T) == 2) return ptx::to_f32(T{u16(row[2 * i] | row[2 * i + 1] << 8)});
  else return ptx::to_f32(T{row[i]});
}

template <class A, class B, bool negative, int registers>
inline __attribute__((always_inline)) void number_wgmma(const WgmmaOperands& operands, f32* (&d)[128]) {
  constexpr int k = 32 / sizeof(A);
  using Wide = f32[k];
  Wide* left = static_cast<Wide*>(operands.scratch);
  static_assert(64 * sizeof(Wide) <= kWgmmaScratchBytes);
  for (u32 row = 0; row < 64; ++row)
    for (u32 i = 0; i < k; ++i) {
      const f32 x = widen_element<A>(operands.a[row], i);
      left[row][i] = negative ? -x : x;
    }
  for (u32 j = 0; j < registers / 4; ++j) {
    f32 right[k][8];
    for (u32 c = 0; c < 8; ++c)
      for (u32 i = 0; i < k; ++i) right[i][c] = widen_element<B>(operands.b[8 * j + c], i);
    for (u32 first = 0; first < 64; first += 16) {
      Row8 sums[16];
      const auto each_register = [&](auto visit) {
        for (u32 row = 0; row < 16; ++row)
          for (u32 c = 0; c < 8; ++c)
            visit(reinterpret_cast<f32*>(&sums[row])[c], d[2 * first + row % 8 * 4 + c / 2][4 * j + row / 8 * 2 + c % 2]);
      };
      each_register([&](f32& sum, f32& of_thread) { sum = operands.add ? of_thread : f32(0.f); });
      number_products<k>(left + first, right, sums);
      each_register([&](f32& sum, f32& of_thread) { of_thread = sum; });
    }
  }
}

}  // namespace quern::emu
