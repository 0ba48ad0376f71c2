// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The products of 8-bit operands for kernels with few rows (swap_ab.cuh), scaled stage by stage and added to a second set of sums.
#pragma once
#include "quern/bricks/gemm/sm90/scaled_multiply.cuh"
#include "quern/bricks/gemm/sm90/stage_scales.cuh"
#include "quern/bricks/gemm/sm90/swap_ab.cuh"

namespace quern::gemm {

/// A thread's scales of a stage: of its two rows of b; those of the rows of a are read where they are used.
struct SwappedScales {
  f32 of_b[2];
  u32 first;  // of its stage: bytes from the first of all
};
template <ScaledSwapAb C>
QN_DEVICE SwappedScales scales_of_thread(const u8* memory, const StageScales& at) {
  return {{scale_at<scale_stages(C)>(memory, at.own), scale_at<scale_stages(C)>(memory, at.own + 32)}, at.first};
}
/// What its sums i .. i + 3 are scaled by.
template <ScaledSwapAb C>
QN_DEVICE void scales_of_four(const u8* memory, const SwappedScales& s, int i, f32 (&scale)[4]) {
  f32 of_a[2];
  two_scales_at<scale_stages(C)>(memory, s.first + u32(8 * i) + ptx::lane_id() % 4 * 8, of_a);
  QN_UNROLL
  for (int j = 0; j < 4; ++j) scale[j] = s.of_b[j / 2] * of_a[j % 2];
}
/// Bytes from the first scale of a stage to that of a thread's first row of b.
template <ScaledSwapAb C>
QN_DEVICE u32 scale_of_row(u32 warpgroup) {
  return 4 * (u32(C.block.tiles.tile_m) + 64 * warpgroup + 16 * warp_of_warpgroup() + ptx::lane_id() / 4);
}
/// All of them.
template <ScaledSwapAb C>
struct ScalesOfSums {
  f32 scale[C.block.tiles.tile_m / 8][4];
};
template <ScaledSwapAb C>
QN_DEVICE ScalesOfSums<C> scales_of_sums(const u8* memory, const SwappedScales& of_thread) {
  ScalesOfSums<C> s;
  QN_UNROLL
  for (int i = 0; i < C.block.tiles.tile_m / 8; ++i) scales_of_four<C>(memory, of_thread, 4 * i, s.scale[i]);
  return s;
}

/// total = the products of 64 rows of b by the tile of a over a part of K, scaled.
template <ScaledSwapAb C>
QN_DEVICE void multiply_scaled_part(const DenseSwapPart& part, u32 smem, u32 warpgroup, Consumer<C.block.tiles.stages>& read,
                                    f32 (&total)[C.block.tiles.tile_m / 2]) {
  constexpr auto L = dense_swap_smem(C.block.tiles);
  constexpr int kSums = C.block.tiles.tile_m / 2, kBatch = scaled_swap_batch(C);
  QN_SMEM(memory);
  const u32 stage = smem + read.stage * L.stage;
  StageOperands operands = stage_operands(stage + L.b + warpgroup * 64 * 128, stage + L.a);
  const auto products = [&](u32 index, f32(&sums)[kSums]) {
    multiply_operands<dtype_t<C.b_dtype>, dtype_t<C.a_dtype>, C.block.tiles.stages, L.stage>(operands, index, sums);
  };
  StageScales scales = stage_scales(read.stage, kScaleBytes<scale_stages(C)>, scale_of_row<C>(warpgroup));
  const auto load = [&](u32 index) {
    const SwappedScales s = scales_of_thread<C>(memory, scales);
    next_stage<C.block.tiles.stages>(scales, index, kScaleBytes<scale_stages(C)>);
    return s;
  };
  const auto unscaled = [](u32) { return Unscaled{}; };
  const auto add_unscaled = [&](const Unscaled&, const f32(&sums)[kSums]) {
    QN_UNROLL
    for (int i = 0; i < kSums; ++i) total[i] = total[i] + sums[i];
  };
  zero(total);
  if constexpr (C.of_all_k && scaled_swap_ahead(C)) {
    multiply_stages_ahead<kBatch, false, false, kSums>(read, part.steps, products, unscaled, add_unscaled);
  } else if constexpr (C.of_all_k) {
    multiply_stages_in_batches<kBatch, kSums>(read, part.steps, products, unscaled, add_unscaled);
  } else if constexpr (scaled_swap_ahead(C)) {
    multiply_stages_ahead<kBatch, true, false, kSums>(read, part.steps, products, load,
                                                      [&](const SwappedScales& of_stage, const f32(&sums)[kSums]) {
                                                        QN_UNROLL
                                                        for (int i = 0; i < kSums; i += 4) {
                                                          f32 scale[4];
                                                          scales_of_four<C>(memory, of_stage, i, scale);
                                                          QN_UNROLL
                                                          for (int j = 0; j < 4; ++j)
                                                            total[i + j] = ptx::fma(sums[i + j], scale[j], total[i + j]);
                                                        }
                                                      });
  } else {
    multiply_stages_in_batches<kBatch, kSums>(
        read, part.steps, products, [&](u32 index) { return scales_of_sums<C>(memory, load(index)); },
        [&](const ScalesOfSums<C>& s, const f32(&sums)[kSums]) {
          QN_UNROLL
          for (int i = 0; i < kSums; ++i) total[i] = ptx::fma(sums[i], s.scale[i / 4][i % 4], total[i]);
        });
  }
}

}  // namespace quern::gemm
