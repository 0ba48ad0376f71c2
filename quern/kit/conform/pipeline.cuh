// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/conform/params.h"
#include "quern/kit/pipeline.cuh"

namespace quern::conform {

/// A producer warp and two consumer warps stream tiles of 8 x 32 f32 through a ring of three stages: out = 2 in + 1.
/// `from` and `to` map [n * 8, 32]; block b takes tiles b, b + blocks, ...
QN_DEVICE void stream_tiles(const TensorParams& p) {
  constexpr int kStages = 3, kTile = 1024, kHalf = kTile / 2;
  QN_SMEM(smem);
  const u32 base = ptx::smem_address(smem), staging = base + kStages * kTile, barriers = staging + 2 * kHalf;
  const u32 warp = ptx::warp_id(), lane = ptx::lane_id();
  if (threadIdx.x == 0) pipeline_init<kStages>(barriers, 2);
  ptx::sync_block();
  if (warp == 0) {
    Producer<kStages> fill{barriers};
    for (u32 tile = blockIdx.x; lane == 0 && tile < u32(p.n); tile += gridDim.x) {
      const u32 full = begin_fill(fill, kTile);
      ptx::tma_load(base + fill.stage * kTile, &p.from, full, CachePolicy::evict_first, 0, i32(8 * tile));
      end_fill(fill);
    }
    if (lane == 0) drain(fill);
  } else {
    // Each consumer has half of the rows, in its own staging.
    const u32 half = warp - 1;
    u8* mine = smem + kStages * kTile + half * kHalf;
    Consumer<kStages> read{barriers};
    for (u32 tile = blockIdx.x; tile < u32(p.n); tile += gridDim.x) {
      begin_read(read);
      f32 v[4];
      for (u32 row = 0; row < 4; ++row)
        v[row] = ptx::ld_shared<f32>(smem + read.stage * kTile + half * kHalf + 128 * row + 4 * lane);
      end_read(read);
      if (lane == 0) ptx::bulk_wait_read<0>();
      ptx::sync_warp();
      for (u32 row = 0; row < 4; ++row)
        ptx::st_shared(mine + 128 * row + 4 * lane, ptx::fma(v[row], f32(2.0f), f32(1.0f)));
      ptx::fence_proxy_async_shared();
      ptx::sync_warp();
      if (lane == 0) {
        ptx::tma_store(&p.to, staging + half * kHalf, CachePolicy::evict_normal, 0, i32(8 * tile + 4 * half));
        ptx::bulk_commit();
      }
    }
    if (lane == 0) ptx::bulk_wait<0>();
  }
  ptx::sync_block();
  if (threadIdx.x == 0) pipeline_inval<kStages>(barriers);
}

}  // namespace quern::conform
