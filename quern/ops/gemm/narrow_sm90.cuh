// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the kernels with one narrow tile of out a block share on sm_90a: few rows, all of K. Every multiprocessor has the same share of b's rows, which
// stream through a ring of stages; the sums stay in the registers of the threads that store them, so that nothing follows the last bytes but one
// stage's products and the stores. One warp loads b, which no kernel before writes, another one a, behind the kernel before. Where tiles would be very
// narrow the blocks of a cluster split K instead (fold), and add their sums up as those of swap_ab_sm90.cuh.
#pragma once
#include "quern/ops/gemm/swap_ab_sm90.cuh"
#include "quern/ops/gemm/tiles_sm90.cuh"

namespace quern::gemm {

/// What the kernels for few rows share, of narrow tiles.
QN_HOST_DEVICE constexpr DenseSwapConfig swapped_of(const DenseSm90Config& c) {
  return {c.dtype, c.out_dtype, c.tile_m, c.tile_n, c.stages, c.threads, 1, c.has_c, c.activation, Major::k, Major::k, c.chunks};
}

/// By one thread: the tile of b, through all stages of the part.
template <DenseSm90Config C, i32 kColumns>
QN_DEVICE void load_narrow_b(const DenseSm90Params& p, const DenseSwapPart& part, u32 smem) {
  constexpr auto L = dense_sm90_smem(C);
  Producer<C.stages> fill{smem + L.barriers};
  QN_NO_UNROLL
  for (int step = part.first_step; step < part.first_step + part.steps; ++step) {
    const u32 full = begin_fill(fill, u32(L.stage - L.b)), to = smem + fill.stage * L.stage + L.b;
    if constexpr (C.chunks > 1) load_in_turn(to, &p.b, full, CachePolicy::evict_first, step * C.chunks, part.column);
    else load_operand<Major::k, C.tile_n>(to, &p.b, full, CachePolicy::evict_first, step * kColumns, part.column);
    end_fill(fill);
  }
}
/// The same of a.
template <DenseSm90Config C, i32 kColumns>
QN_DEVICE void load_narrow_a(const DenseSm90Params& p, const DenseSwapPart& part, u32 smem) {
  constexpr auto L = dense_sm90_smem(C);
  const u32 bytes = u32(rows_of_box<Major::k, C.tile_m>(p.m) * 128 * C.chunks);
  Producer<C.stages> fill{smem + L.barriers};
  QN_NO_UNROLL
  for (int step = part.first_step; step < part.first_step + part.steps; ++step) {
    const u32 full = begin_fill(fill, bytes), to = smem + fill.stage * L.stage + L.a;
    QN_UNROLL
    for (i32 chunk = 0; chunk < C.chunks; ++chunk)
      load_operand<Major::k, C.tile_m>(to + u32(chunk) * C.tile_m * 128, &p.a, full, CachePolicy::evict_last, (step * C.chunks + chunk) * kColumns, part.row);
    end_fill(fill);
  }
}

/// The sums of 64 rows of the tile as [tile_m][tile_n], over the ring that nobody reads any more.
template <DenseSm90Config C>
QN_DEVICE void write_narrow_sums(u8* memory, u32 group, const f32 (&sums)[C.tile_n / 2]) {
  constexpr int kPitch = dense_swap_smem(swapped_of(C)).pitch;
  const int lane = int(ptx::lane_id()), row = int(64 * group + 16 * warp_of_warpgroup()) + lane / 4, column = 2 * (lane % 4);
  QN_UNROLL
  for (int i = 0; i < C.tile_n / 2; i += 2)
    for (int j = 0; j < 2; ++j) ptx::st_shared<f32>(memory + 4 * ((row + i % 4 / 2 * 8) * kPitch + column + i / 4 * 8 + j), sums[i + j]);
}

/// The block. multiply(part, smem, group, sums) makes the sums of 64 rows of the tile by a warpgroup; fill(part, smem) is for `fill_warps` warps, behind
/// the kernel before; they arrive `fills` times at a stage.
template <DenseSm90Config C, i32 kColumns, u32 fills, u32 fill_warps, class Multiply, class Fill>
QN_DEVICE void run_narrow(const DenseSm90Params& p, const Multiply& multiply, const Fill& fill) {
  constexpr u32 kMultiply = 4 * u32(narrow_warpgroups(C.tile_m));  // warps
  static_assert(C.threads == i32(32 * (kMultiply + 2 + fill_warps)) && C.tile_m % 64 == 0 && C.by_lanes);
  QN_SMEM(memory);
  const u32 smem = ptx::smem_address(memory), warp = ptx::shfl(ptx::warp_id(), 0);
  const DenseSwapPart part = part_of_block<swapped_of(C), kColumns * C.chunks>(p);
  if (threadIdx.x == 32 * kMultiply) {
    prefetch_maps(p);
    pipeline_init<C.stages>(smem + dense_sm90_smem(C).barriers, kMultiply, 2 + fills);
  }
  ptx::sync_block();
  ptx::grid_launch_dependents();
  if (warp == kMultiply) {
    if (ptx::lane_id() == 0) load_narrow_b<C, kColumns>(p, part, smem);
    ptx::sync_warp();
  } else if (warp == kMultiply + 1) {
    ptx::grid_dependency_wait();
    if (ptx::lane_id() == 0) load_narrow_a<C, kColumns>(p, part, smem);
    ptx::sync_warp();
  } else if (warp > kMultiply) {
    ptx::grid_dependency_wait();
    fill(part, smem);
  } else {
    constexpr auto L = dense_sm90_smem(C);
    QN_UNROLL
    for (i32 chunk = 0; chunk < C.chunks; ++chunk)
      zero_other_rows<Major::k, C.tile_m>(memory + L.a + chunk * C.tile_m * 128, C.stages, L.stage, p.m, i32(threadIdx.x), 32 * kMultiply);
    ptx::bar_sync(kDenseSwapBarrier, 32 * kMultiply);
    f32 sums[C.tile_n / 2];
    multiply(part, smem, warp / 4, sums);
    if constexpr (C.fold != 0) {
      ptx::bar_sync(kDenseSwapBarrier, 32 * kMultiply);  // nobody reads the ring any more
      write_narrow_sums<C>(memory, warp / 4, sums);
    } else {
      const i32 first = part.row + i32(64 * (warp / 4));
      if (first + i32(16 * warp_of_warpgroup()) >= p.m) return;
      ptx::grid_dependency_wait();
      write_rows<C>(p, first, part.column, sums);
    }
  }
  if constexpr (C.fold != 0) {
    ptx::grid_dependency_wait();
    ptx::cluster_arrive();
    ptx::cluster_wait();
    add_and_store<swapped_of(C)>(p, part, memory, smem);
    // The others read this block's sums
    ptx::cluster_arrive();
    ptx::cluster_wait();
  }
}
template <DenseSm90Config C, i32 kColumns, class Multiply>
QN_DEVICE void run_narrow(const DenseSm90Params& p, const Multiply& multiply) {
  run_narrow<C, kColumns, 0, 0>(p, multiply, [](const DenseSwapPart&, u32) {});
}

}  // namespace quern::gemm
