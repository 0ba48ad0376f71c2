// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/kit.cuh"
#include "quern/kit/wgmma.cuh"
#include "steps/gemm_spec.h"

namespace quern::steps {

/// 64 rows of out from `row`: what a warpgroup's wgmma leaves in its threads' registers, pairs of neighbouring columns.
template <GemmConfig C, int kRegisters>
QN_DEVICE void store_pairs(const GemmMapParams& p, i32 row, i32 column, const f32 (&sums)[kRegisters]) {
  using T = dtype_t<C.dtype>;
  const i32 lane = i32(ptx::lane_id()), first = row + i32(16 * warp_of_warpgroup()) + lane / 4;
  QN_UNROLL
  for (int i = 0; i < kRegisters; i += 2) {
    const i32 to = first + i / 2 % 2 * 8, at = column + i / 4 * 8 + lane % 4 * 2;
    const f32 pair[2] = {sums[i], sums[i + 1]};
    if (to < p.m && at < p.n) store_f32<T, 2>(static_cast<T*>(p.out) + i64(to) * p.out_stride + at, pair);
  }
}

/// Instructions for one stage: kM times 64 rows of a from `first_row` of the tile on, times the tile of b.
template <GemmConfig C, int kM, int kRegisters>
QN_DEVICE void multiply_stage(u32 stage, u32 first_row, f32 (&sums)[kM][kRegisters]) {
  constexpr auto L = gemm_smem(C);
  const auto a = k_major_descriptor(stage + L.a + first_row * 128, Swizzle::b128), b = k_major_descriptor(stage + L.b, Swizzle::b128);
  QN_UNROLL
  for (int k = 0; k < C.tile_k / 16; ++k) {
    QN_UNROLL
    for (int m = 0; m < kM; ++m) ptx::wgmma<dtype_t<C.dtype>>(sums[m], a.advanced(m * 64 * 128 + 32 * k), b.advanced(32 * k), true);
  }
}

}  // namespace quern::steps
