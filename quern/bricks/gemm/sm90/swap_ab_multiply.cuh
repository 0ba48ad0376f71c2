// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The products of 16-bit operands for kernels with few rows (swap_ab.cuh): rows of b times the tile of a.
#pragma once
#include "quern/bricks/gemm/sm90/swap_ab.cuh"

namespace quern::gemm {

/// 64 rows of b times the tile of a.
template <SwapAbBlock C>
QN_DEVICE void multiply_stage(u32 stage, u32 warpgroup, f32 (&sums)[C.tiles.tile_m / 2]) {
  constexpr auto L = dense_swap_smem(C.tiles);
  using T = dtype_t<C.ending.dtype>;
  constexpr u32 kStepB = kOperandStep<C.tiles.b_major, C.tiles.tile_n>, kStepA = kOperandStep<C.tiles.a_major, C.tiles.tile_m>;
  QN_UNROLL
  for (u32 chunk = 0; chunk < u32(C.tiles.chunks); ++chunk) {
    const u32 rows = stage + L.b + warpgroup * 64 * 128 * C.tiles.chunks;
    const auto b =
        C.tiles.chunks > 1 ? descriptor_in_turn(rows, chunk, C.tiles.chunks) : operand_descriptor<C.tiles.b_major, C.tiles.tile_n>(rows);
    const auto a = operand_descriptor<C.tiles.a_major, C.tiles.tile_m>(stage + L.a + chunk * C.tiles.tile_m * 128);
    QN_UNROLL
    for (u32 k = 0; k < kDenseSm90TileK / 16; ++k)
      ptx::wgmma<T, T, WgmmaForm{.a = C.tiles.b_major, .b = C.tiles.a_major}>(sums, b.advanced(kStepB * k), a.advanced(kStepA * k), true);
  }
}

template <SwapAbBlock C>
QN_DEVICE void multiply_part(const DenseSwapPart& part, u32 smem, u32 warpgroup, Consumer<C.tiles.stages>& read,
                             f32 (&sums)[C.tiles.tile_m / 2]) {
  constexpr auto L = dense_swap_smem(C.tiles);
  const auto free = [&](u32 stage) { release(read, stage); };
  zero(sums);
  const u32 last =
      multiply_stages(read, part.steps, sums, [&](u32 stage) { multiply_stage<C>(smem + stage * L.stage, warpgroup, sums); }, free);
  finish_stages(part.steps, last, sums, free);
}

}  // namespace quern::gemm
