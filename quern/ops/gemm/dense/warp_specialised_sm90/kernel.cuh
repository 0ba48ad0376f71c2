// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, j] = activation(sum_x a[i, x] b[j, x] + bias[j] + c[i, j]), for sm_90a
// Tiles, loads and stores: bricks/gemm/sm90/tiles.cuh. The two warpgroups multiply by wgmma, whose operands both come from the stage: half
// of a tile's rows each, or whole tiles in turn, so that one stores its results while the other multiplies. An element is the sum over k in
// ascending order, 16 columns an instruction, whatever the tile. Where tiles are `swapped` the operands have changed places, and out is
// made transposed.
#pragma once
#include "quern/bricks/gemm/sm90/multiply.cuh"
#include "quern/bricks/gemm/sm90/tiles.cuh"

namespace quern::gemm {

/// sums = the sum of the parts of K, in ascending order.
template <BlockSm90 C, int kM, int kRegisters, class Multiply, class Free>
QN_DEVICE void sum_parts(const DenseSm90Params& p, Consumer<C.tiles.stages>& read, f32 (&sums)[kM][kRegisters], const Multiply& multiply,
                         const Free& free) {
  f32 total[kM][kRegisters];
  zero(total);
  QN_NO_UNROLL
  for (u32 part = 0; part < u32(p.parts); ++part) {
    const int count = int(dense_sm90_part_begin(p.k, kDenseSm90TileK, part + 1, u32(p.parts)) -
                          dense_sm90_part_begin(p.k, kDenseSm90TileK, part, u32(p.parts)));
    zero(sums);
    const u32 last = multiply_stages(read, count, sums, multiply, free);
    finish_stages(count, last, sums, free);
    QN_UNROLL
    for (int m = 0; m < kM; ++m) {
      QN_UNROLL
      for (int i = 0; i < kRegisters; ++i) total[m][i] = total[m][i] + sums[m][i];
    }
  }
  QN_UNROLL
  for (int m = 0; m < kM; ++m) {
    QN_UNROLL
    for (int i = 0; i < kRegisters; ++i) sums[m][i] = total[m][i];
  }
}

/// sums = the sum of all of K; issued() follows the last products' issue.
template <int stages, int kM, int kRegisters, class Multiply, class Free, class Issued>
QN_DEVICE void sum_whole(Consumer<stages>& read, int steps, f32 (&sums)[kM][kRegisters], const Multiply& multiply, const Free& free,
                         const Issued& issued) {
  zero(sums);
  const u32 last = multiply_stages(read, steps, sums, multiply, free);
  issued();
  finish_stages(steps, last, sums, free);
}

/// The same of swapped tiles, of as many columns as the call's have, in steps from kColumns on: a loop over K for each, and a branch that
/// is the same for all tiles. So one kernel makes tiles of several widths.
template <BlockSm90 C, int kColumns, int kM, int kRegisters, class Free, class Issued>
QN_DEVICE void sum_columns(const DenseSm90Params& p, u32 smem, u32 row, Consumer<C.tiles.stages>& read, int steps,
                           f32 (&sums)[kM][kRegisters], const Free& free, const Issued& issued) {
  constexpr i32 kStep = swapped_step(C.tiles.tile_n);
  static_assert((C.tiles.tile_n - kColumns) % kStep == 0);
  if (kColumns >= C.tiles.tile_n || p.rows <= kColumns)
    sum_whole(
        read, steps, sums, [&](u32 stage) { multiply_stage<C, kColumns>(smem + stage * dense_sm90_smem(C).stage, row, sums); }, free,
        issued);
  else if constexpr (kColumns < C.tiles.tile_n) sum_columns<C, kColumns + kStep>(p, smem, row, read, steps, sums, free, issued);
}

template <BlockSm90 C, bool kFold>
QN_DEVICE void multiply_tiles(const DenseSm90Params& p, u32 smem, u32 warpgroup) {
  constexpr u32 kTurns = C.tiles.alternate ? 2 : 1;
  constexpr int kM = C.tiles.tile_m / 64 * kTurns / 2, kStage = dense_sm90_smem(C).stage;
  const u32 turn = C.tiles.alternate ? warpgroup : 0, first_row = C.tiles.alternate ? 0 : warpgroup * 64;
  zero_other_rows<C>(p);
  const u32 steps = u32(p.k + kDenseSm90TileK - 1) / kDenseSm90TileK;
  Consumer<C.tiles.stages> read{smem + dense_sm90_smem(C).barriers};
  u32 parities = 0;  // of the waits for c
  if constexpr (C.tiles.alternate) skip_reads(read, turn * steps);
  for (TileWalk walk = walk_tiles<C.tiles>(p, blockIdx.x + turn * gridDim.x, kTurns * gridDim.x, u32(p.group_log2)); has_tile(walk);
       walk_on(walk)) {
    f32 sums[kM][C.tiles.tile_n / 2];
    const DenseTile tile = tile_of<C.tiles>(p, walk);
    bool started = false;
    const auto free = [&](u32 stage) {
      release(read, stage);
      if constexpr (!C.tiles.alternate && C.store.c_boxes != 0) {
        if (!started) start_c<C>(p, tile.row + i32(first_row), tile.column);
        started = true;
      }
    };
    if constexpr (C.tiles.alternate) start_c<C>(p, tile.row + i32(first_row), tile.column);
    // Without its turn a warpgroup would wait for a stage that is still to be filled for the other: parities tell only two
    // fillings apart, so that wait would not hold it back.
    if (C.tiles.alternate && walk.index != blockIdx.x) ptx::bar_sync(kMultiplyBarrier + int(turn), 2 * kWarpgroupSize);
    const u32 row_of_a = first_row + u32(rows_earlier_of_tile<C.tiles>(tile.row, p.m));
    const auto issued = [&] {
      if (C.tiles.alternate && has_tile(walk, gridDim.x)) ptx::bar_arrive(kMultiplyBarrier + 1 - int(turn), 2 * kWarpgroupSize);
    };
    const auto multiply = [&](u32 stage) { multiply_stage<C>(smem + stage * kStage, row_of_a, sums); };
    if constexpr (C.tiles.swapped != 0) {
      sum_columns<C, C.tiles.swapped>(p, smem, row_of_a, read, int(steps), sums, free, issued);
    } else if constexpr (!kFold) {
      sum_whole(read, int(steps), sums, multiply, free, issued);
    } else {
      sum_parts<C>(p, read, sums, multiply, free);
    }
    if constexpr (C.tiles.alternate) skip_reads(read, steps);
    if (!has_tile(walk, walk.step)) ptx::grid_launch_dependents();
    // With an activation or c a loop in which 64 rows take the place of those before: their copies of the code took a third of the kernel's
    // compile time. Of a plain tile the copies are short, and the loop cost 2 % at (32768, 512).
    static_assert(kM <= 2);
    constexpr int kAtOnce = C.ending.has_c == 0 && C.ending.activation == 0 ? kM : 1;
    QN_NO_UNROLL
    for (int first = 0; first < kM; first += kAtOnce) {
      QN_UNROLL
      for (int m = 0; m < kAtOnce; ++m) {
        const i32 row = tile.row + i32(first_row) + 64 * (first + m);
        if (first + m > 0) start_c<C>(p, row, tile.column);
        if constexpr (C.tiles.swapped != 0) write_swapped<C>(p, row, tile.column, sums[m]);
        else write_rows<C>(p, row, tile.column, sums[m], parities);
      }
      QN_UNROLL
      for (int i = 0; i < C.tiles.tile_n / 2; ++i) sums[0][i] = sums[kM - 1][i];
    }
  }
}

template <TilesSm90Config C>
QN_DEVICE void dense_warp_specialised_sm90(const DenseSm90Params& p) {
  static_assert(C.block.tiles.tile_n % 16 == 0 && !(C.sum_parts_in_block && (C.block.tiles.alternate || C.block.tiles.swapped)) &&
                C.block.tiles.pair == 0);
  run_warpgroups<C.block>(
      p, C.block.tiles.alternate ? 4 : 8, [&](u32 smem) { load_tiles<C.block, kDenseSm90TileK>(p, smem); },
      [&](u32 smem, u32 warpgroup) { multiply_tiles<C.block, C.sum_parts_in_block != 0>(p, smem, warpgroup); });
}

}  // namespace quern::gemm
