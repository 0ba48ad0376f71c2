// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// A ring of stages: a warpgroup that only loads runs ahead of two that only multiply, and gives them its registers.
#pragma once
#include "quern/kit/wgmma_ring.cuh"
#include "steps/store_pairs.cuh"

namespace quern::steps {

/// One thread fills a stage as soon as all warps have released it.
template <GemmConfig C>
QN_DEVICE void load_tile(const GemmMapParams& p, u32 smem, Producer<C.stages>& fill, i32 row, i32 column) {
  constexpr auto L = gemm_smem(C);
  QN_NO_UNROLL
  for (i32 k = 0; k < p.k; k += C.tile_k) {
    const u32 full = begin_fill(fill, L.stage), stage = smem + fill.stage * L.stage;
    ptx::tma_load(stage + L.a, &p.a, full, CachePolicy::evict_normal, k, row);
    ptx::tma_load(stage + L.b, &p.b, full, CachePolicy::evict_normal, k, column);
    end_fill(fill);
  }
}

/// A warpgroup multiplies its half of the tile's rows and stores them.
template <GemmConfig C>
QN_DEVICE void multiply_tile(const GemmMapParams& p, u32 smem, Consumer<C.stages>& read, u32 warpgroup, i32 row, i32 column) {
  constexpr int kM = C.tile_m / 2 / 64, kStage = gemm_smem(C).stage;
  const u32 first_row = warpgroup * (C.tile_m / 2);
  const int steps = (p.k + C.tile_k - 1) / C.tile_k;
  f32 sums[kM][C.tile_n / 2];
  zero(sums);
  const auto free = [&](u32 stage) { release(read, stage); };
  const u32 last = multiply_stages(read, steps, sums, [&](u32 stage) { multiply_stage<C>(smem + stage * kStage, first_row, sums); }, free);
  finish_stages(steps, last, sums, free);
  QN_UNROLL
  for (int m = 0; m < kM; ++m) store_pairs<C>(p, row + i32(first_row) + 64 * m, column, sums[m]);
}

/// The block's barriers, and its two roles: load(fill) by one thread, multiply(read, warpgroup) by two warpgroups.
template <GemmConfig C, class Load, class Multiply>
QN_DEVICE void run_roles(u32 smem, const Load& load, const Multiply& multiply) {
  static_assert(C.threads == 3 * kWarpgroupSize && C.tile_k == 64);
  const u32 barriers = smem + gemm_smem(C).barriers;
  if (threadIdx.x == 0) pipeline_init<C.stages>(barriers, 8);
  ptx::sync_block();
  const u32 warpgroup = ptx::shfl(warpgroup_id(), 0);
  if (warpgroup == 0) {
    ptx::decrease_registers<40>();
    Producer<C.stages> fill{barriers};
    if (threadIdx.x == 0) load(fill);
  } else {
    ptx::increase_registers<232>();
    Consumer<C.stages> read{barriers};
    multiply(read, warpgroup - 1);
  }
}

template <GemmConfig C>
QN_DEVICE void gemm_ring(const GemmMapParams& p) {
  QN_SMEM(memory);
  const u32 smem = ptx::smem_address(memory), tiles_n = u32(p.n + C.tile_n - 1) / C.tile_n;
  const i32 row = i32(blockIdx.x / tiles_n * C.tile_m), column = i32(blockIdx.x % tiles_n * C.tile_n);
  run_roles<C>(
      smem, [&](Producer<C.stages>& fill) { load_tile<C>(p, smem, fill, row, column); },
      [&](Consumer<C.stages>& read, u32 warpgroup) { multiply_tile<C>(p, smem, read, warpgroup, row, column); });
}

}  // namespace quern::steps
