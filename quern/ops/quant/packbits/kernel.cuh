// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[b] has x[8 b + i] != 0 as its bit 7 - i (big) or i (little), 0 past the end
// A thread makes a byte of 8 elements, four of them in flight: each_chunk.
#pragma once
#include "quern/bricks/rows/chunks.cuh"
#include "quern/ops/quant/bits/bits.cuh"
#include "quern/ops/quant/packbits/spec.h"

namespace quern::quant {

template <PackbitsConfig C> QN_DEVICE void packbits_chunk(const PackbitsParams& p) {
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  rows::each_chunk<u32x2, C.chunks, C.threads>(
      1, ceil_div<i64>(p.bits, 8),
      [&](i64, i64 byte, u32x2& elements) {
        const u8* x = static_cast<const u8*>(p.x) + 8 * byte;
        if (C.aligned != 0 && 8 * byte + 8 <= p.bits) elements = ptx::ld_global<u32x2>(x);
        else elements = load_elements(x, p.bits - 8 * byte);
      },
      [&](i64, i64 byte, const u32x2& elements) { ptx::st_global<u8>(static_cast<u8*>(p.out) + byte, packed_byte<C.order>(elements)); });
}

}  // namespace quern::quant
