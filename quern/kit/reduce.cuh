// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Reductions over lanes and over a block, in a fixed order: the same bits on every run.
#pragma once
#include "quern/kit/world.cuh"

namespace quern {

/// Sum over groups of kLanes consecutive lanes (a power of two); every lane gets its group's. Butterfly order.
template <int kLanes = 32> QN_DEVICE f32 warp_sum(f32 v) {
  QN_UNROLL
  for (int d = kLanes / 2; d > 0; d >>= 1) v = v + ptx::shfl_xor(v, d);
  return v;
}
template <int kLanes = 32> QN_DEVICE f32 warp_max(f32 v) {
  QN_UNROLL
  for (int d = kLanes / 2; d > 0; d >>= 1) v = ptx::fmax(v, ptx::shfl_xor(v, d));
  return v;
}

/// Sum over a block of kThreads (a multiple of 32); every thread gets it. `scratch`: one f32 a warp in shared memory; it may be
/// used again after the next barrier of the block.
template <int kThreads> QN_DEVICE f32 block_sum(f32 v, f32* scratch) {
  static_assert(kThreads % 32 == 0 && kThreads <= 1024);
  v = warp_sum(v);
  if constexpr (kThreads == 32) return v;
  constexpr int kWarps = kThreads / 32;
  if (ptx::lane_id() == 0) scratch[threadIdx.x / 32] = v;
  ptx::sync_block();
  f32 sum = scratch[0];
  if constexpr (kWarps <= 8) {  // few warps: reading all partial sums is shorter than a second butterfly
    QN_UNROLL
    for (int w = 1; w < kWarps; ++w) sum = sum + scratch[w];
  } else {
    sum = warp_sum(int(ptx::lane_id()) < kWarps ? scratch[ptx::lane_id()] : f32(0.f));
  }
  return sum;
}

/// Like warp_max; NaN where a lane has one.
template <int kLanes = 32> QN_DEVICE f32 warp_max_nan(f32 v) {
  QN_UNROLL
  for (int d = kLanes / 2; d > 0; d >>= 1) v = ptx::fmax_nan(v, ptx::shfl_xor(v, d));
  return v;
}

/// Maximum over a block of kThreads of values >= 0, NaN where a thread has one; every thread gets it. `scratch` as above.
template <int kThreads> QN_DEVICE f32 block_max_nan(f32 v, f32* scratch) {
  static_assert(kThreads % 32 == 0 && kThreads <= 1024);
  v = warp_max_nan(v);
  if (ptx::lane_id() == 0) scratch[threadIdx.x / 32] = v;
  ptx::sync_block();
  return warp_max_nan(int(ptx::lane_id()) < kThreads / 32 ? scratch[ptx::lane_id()] : f32(0.f));
}

}  // namespace quern
