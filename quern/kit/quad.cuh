// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Four neighbouring lanes, as MMAs spread the columns of a row over them.
#pragma once
#include "quern/kit/world.cuh"

namespace quern {

/// In each quad of lanes, words[i] of lane q becomes words[q] of lane i.
QN_DEVICE void transpose_quad(u32 (&words)[4]) {
  const u32 lane = ptx::lane_id();
  QN_UNROLL
  for (int bit = 1; bit <= 2; bit *= 2) {
    const bool upper = (lane & u32(bit)) != 0;
    QN_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (i & bit) continue;
      const u32 given = upper ? words[i] : words[i + bit];
      const u32 taken = ptx::shfl_xor(given, bit);
      if (upper) words[i] = taken;
      else words[i + bit] = taken;
    }
  }
}

}  // namespace quern
