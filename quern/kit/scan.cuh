// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Prefix sums and maxima over a warp, prefix sums over a block.
#pragma once
#include "quern/kit/world.cuh"

namespace quern {

/// Inclusive prefix sum, largest value so far, of the lanes' values. By all lanes.
QN_DEVICE u32 warp_prefix_sum(u32 v) {
  QN_UNROLL
  for (int d = 1; d < 32; d *= 2) {
    const u32 before = ptx::shfl_up(v, d);
    if (ptx::lane_id() >= u32(d)) v += before;
  }
  return v;
}
/// Prefix sums cut to `most`, of values that are at most that; most < 2^31.
QN_DEVICE u32 warp_prefix_sum_upto(u32 v, u32 most) {
  QN_UNROLL
  for (int d = 1; d < 32; d *= 2) {
    const u32 before = ptx::shfl_up(v, d);
    if (ptx::lane_id() >= u32(d)) v = min_of(v + before, most);
  }
  return v;
}
QN_DEVICE i32 warp_prefix_max(i32 v) {
  QN_UNROLL
  for (int d = 1; d < 32; d *= 2) {
    const i32 before = ptx::shfl_up(v, d);
    if (ptx::lane_id() >= u32(d)) v = max_of(v, before);
  }
  return v;
}

/// The first lane whose value is above `x`, where values ascend from lane to lane and the last one's is above. By all lanes.
QN_DEVICE int first_lane_above(u32 value, u32 x) {
  int lane = 0;
  QN_UNROLL
  for (int d = 16; d > 0; d /= 2)
    if (ptx::shfl(value, lane + d - 1) <= x) lane += d;
  return lane;
}

/// Inclusive prefix sum of the threads' values over a block of kThreads (a multiple of 32); every thread also gets the sum
/// of all. `scratch`: one u32 a warp in shared memory, free again on return.
template <int kThreads> QN_DEVICE u32 block_prefix_sum(u32 v, u32* scratch, u32& total) {
  static_assert(kThreads % 32 == 0 && kThreads <= 1024);
  constexpr u32 kWarps = kThreads / 32;
  const u32 warp = threadIdx.x / 32;
  v = warp_prefix_sum(v);
  if (ptx::lane_id() == 31) scratch[warp] = v;
  ptx::sync_block();
  u32 base = 0;
  total = 0;
  QN_UNROLL
  for (u32 w = 0; w < kWarps; ++w) {
    const u32 sum = scratch[w];
    if (w < warp) base += sum;
    total += sum;
  }
  ptx::sync_block();
  return base + v;
}

}  // namespace quern
