// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, j] = sum_x scales_a(i, x) scales_b(g, j, x) a[i, x] b[g, j, x] for the rows i of each group g, for sm_90a and few rows a group
// ops/gemm/grouped/swap_ab_sm90/kernel.cuh with the sums of ops/gemm/scaled/swap_ab_sm90/kernel.cuh.
#pragma once
#include "quern/bricks/gemm/sm90/scaled_swap_ab_multiply.cuh"
#include "quern/ops/gemm/grouped/swap_ab_sm90/kernel.cuh"

namespace quern::gemm {

template <ScaledSwapAbConfig C>
QN_DEVICE void grouped_scaled_swap_ab_sm90(const GroupedScaledSm90Params& p) {
  static_assert(C.product.of_all_k == 0);
  constexpr ScaleStages S = scale_stages(C.product);
  QN_SMEM(memory);
  auto fill = start_scales<S>(ptx::smem_address(memory));
  run_grouped_swapped<C.product.block, kScaledGroup, kScaleFills<S>, u32(S.warps)>(
      p.gemm,
      [&](const DenseSwapPart& part, u32 smem, u32 warpgroup, Consumer<C.product.block.tiles.stages>& read,
          f32(&sums)[C.product.block.tiles.tile_m / 2]) { multiply_scaled_part<C.product>(part, smem, warpgroup, read, sums); },
      [&](const GroupedTile& tile, const DenseSwapPart& part, u32 smem) {
        fill_scales<S>(fill, smem, scales_of_group(p, tile), part.row, part.column, 0, part.steps);
      });
  finish_scales();
}

}  // namespace quern::gemm
