// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, j] = sum_x scales_a(i, x) scales_b(j, x) a[i, x] b[j, x] + c[i, j] + bias[j], for sm_90a and few rows of a
// ops/gemm/dense/swap_ab_sm90/kernel.cuh with stages of 128 columns of 8 bits, whose products are scaled and added to a second set of sums.
#pragma once
#include "quern/bricks/gemm/sm90/scaled_swap_ab_multiply.cuh"

namespace quern::gemm {

/// total = total by the scales of all of K.
template <ScaledSwapAb C>
QN_DEVICE void scale_part(u32 smem, u32 warpgroup, f32 (&total)[C.block.tiles.tile_m / 2]) {
  QN_SMEM(memory);
  begin_read(Consumer<scale_stages(C).stages>{smem + u32(scale_stages(C).barriers)});
  const SwappedScales own = scales_of_thread<C>(memory, {0, scale_of_row<C>(warpgroup)});
  QN_UNROLL
  for (int i = 0; i < C.block.tiles.tile_m / 2; i += 4) {
    f32 scale[4];
    scales_of_four<C>(memory, own, i, scale);
    QN_UNROLL
    for (int j = 0; j < 4; ++j) total[i + j] = total[i + j] * scale[j];
  }
}

template <ScaledSwapAbConfig C>
QN_DEVICE void scaled_swap_ab_sm90(const ScaledSm90Params& p) {
  constexpr ScaleStages S = scale_stages(C.product);
  QN_SMEM(memory);
  if (threadIdx.x == 0) init_scales<S>(ptx::smem_address(memory), 2 * C.product.block.tiles.tile_n / 32);
  run_swapped<C.product.block, kScaledGroup, kScaleFills<S>, u32(S.warps)>(
      p.gemm,
      [&](const DenseSwapPart& part, u32 smem, u32 warpgroup, f32(&sums)[C.product.block.tiles.tile_m / 2]) {
        Consumer<C.product.block.tiles.stages> read{smem + dense_swap_smem(C.product.block.tiles).barriers};
        multiply_scaled_part<C.product>(part, smem, warpgroup, read, sums);
        if constexpr (C.product.of_all_k) scale_part<C.product>(smem, warpgroup, sums);
      },
      [&](const DenseSwapPart& part, u32 smem) {
        auto fill = start_scales<S>(smem);
        fill_scales<S>(fill, smem, p, part.row, part.column, part.first_step, part.steps);
        finish_scales();
      });
}

}  // namespace quern::gemm
