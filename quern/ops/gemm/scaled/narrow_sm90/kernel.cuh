// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, j] = sum_x scales_a(i, x) scales_b(j, x) a[i, x] b[j, x] + c[i, j] + bias[j], for sm_90a and few rows of a
// bricks/gemm/sm90/narrow.cuh with stages of 128 columns of 8 bits, whose products are scaled by multiply_scaled_tile().
#pragma once
#include "quern/bricks/gemm/sm90/narrow.cuh"
#include "quern/bricks/gemm/sm90/scaled_tile.cuh"

namespace quern::gemm {

template <ScaledSm90Config C>
QN_DEVICE void scaled_narrow_sm90(const ScaledSm90Params& p) {
  constexpr ScaleStages S = scale_stages(C.product);
  QN_SMEM(memory);
  if (threadIdx.x == 0) init_scales<S>(ptx::smem_address(memory), 4 * u32(narrow_warpgroups(C.product.block)));
  run_narrow<C.product.block, kScaledGroup, kScaleFills<S>, u32(S.warps)>(
      p.gemm,
      [&](const DenseSwapPart& part, u32 smem, u32 group, Consumer<C.product.block.tiles.stages>& read,
          f32(&sums)[kScaledSums<C.product>]) {
        const u32 row = first_row_of<C.product.block>(group), column = first_column_of<C.product.block>(group);
        multiply_scaled_tile<C.product>(smem, row, 0, part.steps, read, sums, column);
        if constexpr (C.product.column_scales == 1) {
          Consumer<S.stages> scales{smem + u32(S.barriers)};
          begin_read(scales);
          scale_tile<C.product>(scales.stage, row, sums, column);
          end_read(scales);
        }
      },
      [&](const DenseSwapPart& part, u32 smem) {
        auto fill = start_scales<S>(smem);
        fill_scales<S>(fill, smem, p, part.row, part.column, part.first_step, part.steps);
        finish_scales();
      });
}

}  // namespace quern::gemm
