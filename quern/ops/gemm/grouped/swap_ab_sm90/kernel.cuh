// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, j] = sum_x a[i, x] b[g, j, x] for the rows i of each group g, for sm_90a and few rows a group
// The tiles, the ring and the stores of bricks/gemm/sm90/swap_ab.cuh, tile after tile: the sums of one go through the memory of the ring,
// which the next one then fills. Of tiles of 128 columns two blocks an SM fill the gap.
#pragma once
#include "quern/bricks/gemm/groups/sm90.cuh"
#include "quern/bricks/gemm/sm90/swap_ab_multiply.cuh"

namespace quern::gemm {

/// By one thread.
template <SwapAbBlock C, i32 kColumns>
QN_DEVICE void load_grouped_part(const GroupedSm90Params& p, const GroupedTile& tile, const DenseSwapPart& part, u32 smem,
                                 Producer<C.tiles.stages>& fill) {
  constexpr auto L = dense_swap_smem(C.tiles);
  QN_NO_UNROLL
  for (int step = 0; step < part.steps; ++step) {
    const u32 full = begin_fill(fill, L.stage), stage = smem + fill.stage * L.stage;
    load_rows_of_b<C.tiles.b_major, C.tiles.tile_n>(stage + L.b, &p.b, p.b_rows, full, CachePolicy::evict_first, step * kColumns,
                                                    part.column, tile.group);
    load_rows(stage + L.a, &p.a, p.a_rows, full, CachePolicy::evict_last, step * kColumns, part.row, matrix_of(p, tile));
    end_fill(fill);
  }
}

/// The block. multiply(part, smem, warpgroup, read, sums) makes the sums of 64 rows of b by the tile of a, fill(tile, part, smem) is for
/// the `fill_warps` warps behind the one that loads; they arrive `fills` times at a stage.
template <SwapAbBlock C, i32 kColumns, u32 fills, u32 fill_warps, class Multiply, class Fill>
QN_DEVICE void run_grouped_swapped(const GroupedSm90Params& p, const Multiply& multiply, const Fill& fill) {
  constexpr int kConsumers = 2 * C.tiles.tile_n;
  constexpr i32 kThreads = swap_ab_threads(C.tiles, i32(fill_warps));
  static_assert(C.tiles.tile_n % 64 == 0 && C.ending.has_c == 0 && C.ending.activation == 0);
  QN_SMEM(memory);
  const u32 smem = ptx::smem_address(memory), barriers = smem + dense_swap_smem(C.tiles).barriers;
  const u32 warp = ptx::shfl(ptx::warp_id(), 0);
  if (threadIdx.x == kConsumers) {
    ptx::prefetch_tensormap(&p.b);
    ptx::prefetch_tensormap(&p.a);
    pipeline_init<C.tiles.stages>(barriers, kConsumers / 32, 1 + fills);
  }
  ptx::sync_block();
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  Producer<C.tiles.stages> loads{barriers};
  Consumer<C.tiles.stages> read{barriers};
  const i32 steps = (p.k + kColumns - 1) / kColumns;
  each_tile<C.tiles.tile_m, C.tiles.tile_n>(p, [&](const GroupedTile& tile) {
    const i32 row = tile.begin + i32(tile.at.m * C.tiles.tile_m), earlier = rows_earlier<C.tiles.tile_m>(row, p.rows.rows);
    const DenseSwapPart part{row - earlier, tile.column, earlier, 0, steps, 0, 1, C.tiles.tile_m};
    if (warp == kConsumers / 32) {
      if (ptx::elect_sync()) load_grouped_part<C, kColumns>(p, tile, part, smem, loads);
      ptx::sync_warp();
    } else if (warp > kConsumers / 32) {
      fill(tile, part, smem);
    } else {
      f32 sums[C.tiles.tile_m / 2];
      multiply(part, smem, warp / 4, read, sums);
      ptx::bar_sync(kMultiplyBarrier, kConsumers);  // nobody reads the ring any more
      write_sums<C>(memory, warp / 4, sums);
    }
    ptx::sync_block();
    add_and_store<C, kThreads>(out_of_group<dtype_t<C.ending.out_dtype>>(p, tile), part, memory, smem);
    ptx::fence_proxy_async_shared();  // TMA writes over the sums next
    ptx::sync_block();
  });
}

template <SwapAbConfig C>
QN_DEVICE void grouped_swap_ab_sm90(const GroupedSm90Params& p) {
  run_grouped_swapped<C.block, kDenseSm90TileK, 0, 0>(
      p,
      [&](const DenseSwapPart& part, u32 smem, u32 warpgroup, Consumer<C.block.tiles.stages>& read, f32(&sums)[C.block.tiles.tile_m / 2]) {
        multiply_part<C.block>(part, smem, warpgroup, read, sums);
      },
      [](const GroupedTile&, const DenseSwapPart&, u32) {});
}

}  // namespace quern::gemm
