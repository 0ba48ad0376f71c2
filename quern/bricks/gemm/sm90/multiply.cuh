// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The products of a stage of 16-bit operands, by a warpgroup, for kernels with tiles of many rows (tiles.cuh).
#pragma once
#include "quern/bricks/gemm/sm90/tiles.cuh"

namespace quern::gemm {

/// Rows of a tile of a from `row` on, 64 an instruction, times the first kColumns rows of b's tile.
template <BlockSm90 C, int kColumns, int kM, int kRegisters>
QN_DEVICE void multiply_stage(u32 stage, u32 row, f32 (&sums)[kM][kRegisters]) {
  constexpr auto L = dense_sm90_smem(C);
  using T = dtype_t<C.ending.dtype>;
  constexpr u32 kStepA = kOperandStep<C.tiles.a_major, C.tiles.tile_m>, kStepB = kOperandStep<C.tiles.b_major, C.tiles.tile_n>;
  const auto a = operand_descriptor<C.tiles.a_major, C.tiles.tile_m>(stage + L.a + row * 128);
  const auto b = operand_descriptor<C.tiles.b_major, C.tiles.tile_n>(stage + L.b);
  QN_UNROLL
  for (u32 k = 0; k < kDenseSm90TileK / 16; ++k) {
    QN_UNROLL
    for (int m = 0; m < kM; ++m)
      ptx::wgmma<T, T, WgmmaForm{.a = C.tiles.a_major, .b = C.tiles.b_major}>(
          reinterpret_cast<f32(&)[kColumns / 2]>(sums[m]), a.advanced(m * 64 * 128 + kStepA * k), b.advanced(kStepB * k), true);
  }
}

template <BlockSm90 C, int kM, int kRegisters>
QN_DEVICE void multiply_stage(u32 stage, u32 row, f32 (&sums)[kM][kRegisters]) {
  multiply_stage<C, C.tiles.tile_n>(stage, row, sums);
}

}  // namespace quern::gemm
