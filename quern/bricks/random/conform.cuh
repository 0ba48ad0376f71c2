// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// For tests: the words of many counters.
#pragma once
#include "quern/bricks/random/philox.cuh"
#include "quern/kit/conform/params.h"

namespace quern::conform {

/// in: six words each (counter, key); out: four.
QN_DEVICE void philox_words(const Params& p) {
  const u32* in = static_cast<const u32*>(p.in);
  u32* out = static_cast<u32*>(p.out);
  for (i32 i = i32(blockIdx.x * blockDim.x + threadIdx.x); i < p.n; i += i32(gridDim.x * blockDim.x)) {
    const u32* c = in + 6 * i;
    const PhiloxWords w = philox4x32_10({c[0], c[1], c[2], c[3]}, c[4], c[5]);
    for (int j = 0; j < 4; ++j) out[4 * i + j] = w.word[j];
  }
}

}  // namespace quern::conform
