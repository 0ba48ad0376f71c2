// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// One warp: out[k][lane] is the result of the k-th collective on in[lane].
#pragma once
#include "quern/kit/conform/params.h"
#include "quern/kit/world.cuh"

namespace quern::conform {

constexpr int kWarpResults = 18;

QN_DEVICE void warp_collectives(const Params& p) {
  const u32 lane = ptx::lane_id();
  const u32 v = static_cast<const u32*>(p.in)[lane];
  u32* out = static_cast<u32*>(p.out) + lane;
  u32 r[kWarpResults];
  r[0] = ptx::shfl_xor(v, 1);
  r[1] = ptx::shfl_xor(v, 21);
  r[2] = ptx::shfl(v, 7);
  r[3] = ptx::shfl(v, int(lane * 5 + 3));  // indices beyond the warp wrap
  r[4] = ptx::shfl_up(v, 3);
  r[5] = ptx::shfl_down(v, 9);
  r[6] = ptx::shfl_xor(v, 2, 8);
  r[7] = ptx::shfl(v, 5, 8);
  r[8] = ptx::shfl_up(v, 2, 4);
  r[9] = ptx::shfl_down(v, 5, 16);
  r[10] = ptx::bits_of(ptx::shfl_xor(ptx::f32_of_bits(v), 16));
  r[11] = u32(ptx::shfl_down(i32(v), 1));
  r[12] = ptx::ballot(v & 1);
  r[13] = ptx::any(v == 40);
  r[14] = ptx::all(v >= 1000);
  r[15] = lane;
  r[16] = ptx::warp_id();
  // Halves of the warp diverge and meet among themselves.
  if (lane < 16) {
    r[17] = ptx::ballot(v & 2, 0x0000ffffu);
  } else {
    r[17] = ptx::shfl_xor(v, 1, 32, 0xffff0000u);
  }
  ptx::sync_warp();
  for (int k = 0; k < kWarpResults; ++k) out[32 * k] = r[k];
}

}  // namespace quern::conform
