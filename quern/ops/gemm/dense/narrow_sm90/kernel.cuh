// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, j] = activation(sum_x a[i, x] b[j, x] + bias[j] + c[i, j]), for sm_90a and few rows of a: bricks/gemm/sm90/narrow.cuh
#pragma once
#include "quern/bricks/gemm/sm90/narrow.cuh"

namespace quern::gemm {

/// 64 rows of a times a warpgroup's columns of the tile of b.
template <BlockSm90 C>
QN_DEVICE void multiply_narrow_stage(u32 stage, u32 group, f32 (&sums)[warpgroup_columns(C) / 2]) {
  constexpr auto L = dense_sm90_smem(C);
  using T = dtype_t<C.ending.dtype>;
  const u32 columns = stage + L.b + first_column_of<C>(group) * 128 * C.tiles.chunks;
  QN_UNROLL
  for (u32 chunk = 0; chunk < u32(C.tiles.chunks); ++chunk) {
    const auto a = operand_descriptor<Major::k, 64>(stage + L.a + chunk * C.tiles.tile_m * 128 + first_row_of<C>(group) * 128);
    const auto b = C.tiles.chunks > 1 ? descriptor_in_turn(columns, chunk, C.tiles.chunks)
                                      : operand_descriptor<Major::k, warpgroup_columns(C)>(columns);
    QN_UNROLL
    for (u32 k = 0; k < kDenseSm90TileK / 16; ++k) ptx::wgmma<T, T>(sums, a.advanced(32 * k), b.advanced(32 * k), true);
  }
}

template <NarrowSm90Config C>
QN_DEVICE void dense_narrow_sm90(const DenseSm90Params& p) {
  static constexpr int kSums = warpgroup_columns(C.block) / 2;
  run_narrow<C.block, kDenseSm90TileK>(
      p, [&](const DenseSwapPart& part, u32 smem, u32 group, Consumer<C.block.tiles.stages>& read, f32(&sums)[kSums]) {
        if constexpr (!by_mma(C.block)) {
          constexpr auto L = dense_sm90_smem(C.block);
          const auto free = [&](u32 stage) { release(read, stage); };
          zero(sums);
          const u32 last = multiply_stages(
              read, part.steps, sums, [&](u32 stage) { multiply_narrow_stage<C.block>(smem + stage * L.stage, group, sums); }, free);
          finish_stages(part.steps, last, sums, free);
        }
      });
}

}  // namespace quern::gemm
