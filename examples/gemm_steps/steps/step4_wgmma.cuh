// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Hopper's own: one thread asks TMA for whole tiles, four warps multiply 64 x tile_n x 16 at a time, straight from shared memory.
#pragma once
#include "quern/kit/wgmma_ring.cuh"
#include "steps/store_pairs.cuh"

namespace quern::steps {

template <GemmConfig C>
QN_DEVICE void gemm_wgmma(const GemmMapParams& p) {
  constexpr auto L = gemm_smem(C);
  constexpr int kM = C.tile_m / 64;
  static_assert(C.threads == kWarpgroupSize && C.tile_k == 64 && C.stages == 1);
  QN_SMEM(memory);
  const u32 smem = ptx::smem_address(memory), full = smem + L.barriers;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(full, 1);
    ptx::fence_mbarrier_init();
  }
  ptx::sync_block();
  const u32 tiles_n = u32(p.n + C.tile_n - 1) / C.tile_n;
  const i32 row = i32(blockIdx.x / tiles_n * C.tile_m), column = i32(blockIdx.x % tiles_n * C.tile_n);
  f32 sums[kM][C.tile_n / 2];
  zero(sums);
  u32 parity = 0;
  for (i32 k = 0; k < p.k; k += C.tile_k, parity ^= 1) {
    if (threadIdx.x == 0) {
      ptx::mbarrier_arrive_expect_tx(full, L.stage);
      ptx::tma_load(smem + L.a, &p.a, full, CachePolicy::evict_normal, k, row);
      ptx::tma_load(smem + L.b, &p.b, full, CachePolicy::evict_normal, k, column);
    }
    ptx::mbarrier_wait(full, parity);
    hold(sums);
    ptx::wgmma_fence();
    multiply_stage<C>(smem, 0, sums);
    ptx::wgmma_commit();
    hold(sums);
    ptx::wgmma_wait<0>();
    ptx::sync_block();  // all have read the tile: the next copy may overwrite it
  }
  hold(sums);
  QN_UNROLL
  for (int m = 0; m < kM; ++m) store_pairs<C>(p, row + 64 * m, column, sums[m]);
}

}  // namespace quern::steps
