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
      for (u32 row = 0; row < 4; ++row) v[row] = ptx::ld_shared<f32>(smem + read.stage * kTile + half * kHalf + 128 * row + 4 * lane);
      end_read(read);
      if (lane == 0) ptx::bulk_wait_read<0>();
      ptx::sync_warp();
      for (u32 row = 0; row < 4; ++row) ptx::st_shared(mine + 128 * row + 4 * lane, ptx::fma(v[row], f32(2.0f), f32(1.0f)));
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

/// A warp copies p.n (odd) tiles of 48 words of `in` through a ring of three stages, and its copies arrive by themselves;
/// another warp reads. out u32 [48 n + 32]: 3 in + 1; then of each lane of the first warp the exclusive or of two words that
/// it copied and waited for: one of the last tile and one that it did not announce.
QN_DEVICE void announce_copies(const Params& p) {
  constexpr int kStages = 3, kWords = 48;
  QN_SMEM(smem);
  const u32 base = ptx::smem_address(smem), own = 4 * kStages * kWords, barriers = base + own + 128, lane = ptx::lane_id();
  const u32* in = static_cast<const u32*>(p.in);
  u32* out = static_cast<u32*>(p.out);
  if (threadIdx.x == 0) pipeline_init<kStages>(barriers, 1, 32);
  ptx::sync_block();
  if (ptx::warp_id() == 0) {
    Producer<kStages> fill{barriers};
    u32 last = 0;
    for (u32 tile = 0; tile < u32(p.n); ++tile) {
      ptx::mbarrier_wait(empty_barrier<kStages>(barriers, fill.stage), fill.parity);
      const u32 to = base + 4 * kWords * fill.stage;
      const u32* from = in + kWords * tile;
      last = 4 * kWords * fill.stage;
      if (tile % 2 == 0) {
        ptx::cp_async<4>(to + 4 * lane, from + lane);
        if (tile % 4 == 0) ptx::cp_async_commit();
        if (lane < 16) ptx::cp_async<4>(to + 4 * (32 + lane), from + 32 + lane);
      } else if (lane < kWords / 4) {  // the other lanes arrive at once
        ptx::cp_async_cg(to + 16 * lane, from + 4 * lane);
      }
      ptx::cp_async_arrive(full_barrier<kStages>(barriers, fill.stage));
      end_fill(fill);
    }
    ptx::cp_async_commit();
    ptx::cp_async<4>(base + own + 4 * lane, in + lane);
    ptx::cp_async_commit();
    ptx::cp_async_wait<1>();
    ptx::cp_async_wait<0>();
    out[kWords * u32(p.n) + lane] = ptx::ld_shared<u32>(smem + own + 4 * lane) ^ ptx::ld_shared<u32>(smem + last + 4 * lane);
  } else {
    Consumer<kStages> read{barriers};
    for (u32 tile = 0; tile < u32(p.n); ++tile) {
      begin_read(read);
      for (u32 i = 0; i < 2; ++i) {
        const u32 word = kWords - 1 - (lane + 32 * i);
        if (word < u32(kWords)) out[kWords * tile + word] = 3 * ptx::ld_shared<u32>(smem + 4 * (kWords * read.stage + word)) + 1;
      }
      end_read(read);
    }
  }
}

}  // namespace quern::conform
