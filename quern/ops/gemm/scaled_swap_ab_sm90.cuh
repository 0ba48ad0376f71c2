// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, j] = sum_x scales_a(i, x) scales_b(j, x) a[i, x] b[j, x] + c[i, j] + bias[j], for sm_90a and few rows of a
// dense_swap_ab_sm90.cuh with stages of 128 columns of 8 bits, whose products are scaled and added to a second set of sums.
#pragma once
#include "quern/ops/gemm/scaled_multiply_sm90.cuh"
#include "quern/ops/gemm/swap_ab_sm90.cuh"

namespace quern::gemm {

/// A thread's scales of a stage: of its two rows of b, and of the rows lane, lane + 32 .. of a, which are columns of wgmma.
template <ScaledSwapConfig C>
struct ScaledSwapOfThread {
  static constexpr int kHeld = (C.tile_m + 31) / 32;
  f32 b[2], a[kHeld];
};

/// P: parameters of a kernel or of one group of rows. Those of a are read behind the kernel before.
template <ScaledSwapConfig C, class P>
QN_DEVICE void prefetch_scales_of_part(const P& p, const DenseSwapPart& part) {
  const i32 thread = i32(threadIdx.x), threads = 2 * C.tile_n;
  prefetch_scales(p.scales_b, part.column, C.tile_n, p.gemm.n, part.first_step, part.steps, thread, threads);
  ptx::grid_dependency_wait();
  prefetch_scales(p.scales_a, part.row, C.tile_m, p.gemm.m, part.first_step, part.steps, thread, threads);
}

template <ScaledSwapConfig C, class P>
QN_DEVICE void multiply_scaled_part(const P& p, const DenseSwapPart& part, u32 smem, u32 warpgroup, Consumer<C.stages>& read,
                                    f32 (&total)[C.tile_m / 2]) {
  constexpr auto L = dense_swap_smem(tiles_of(C));
  const i32 row = part.column + i32(64 * warpgroup + 16 * warp_of_warpgroup() + ptx::lane_id() / 4);
  using Scales = ScaledSwapOfThread<C>;
  const f32* a[Scales::kHeld];
  QN_UNROLL
  for (int i = 0; i < Scales::kHeld; ++i) a[i] = scales_of_row(p.scales_a, part.row + i32(ptx::lane_id()) + 32 * i, p.gemm.m);
  const f32* const b[2] = {scales_of_row(p.scales_b, row, p.gemm.n), scales_of_row(p.scales_b, row + 8, p.gemm.n)};
  const auto load = [&](int step) {
    Scales s;
    QN_UNROLL
    for (int i = 0; i < 2; ++i) s.b[i] = scale_of_group(b[i], p.scales_b, part.first_step + step);
    QN_UNROLL
    for (int i = 0; i < Scales::kHeld; ++i) s.a[i] = scale_of_group(a[i], p.scales_a, part.first_step + step);
    return s;
  };
  const auto products = [&](u32 index, f32 (&sums)[C.tile_m / 2]) {
    const u32 stage = smem + index * L.stage;
    const auto rows = k_major_descriptor(stage + L.b + warpgroup * 64 * 128, Swizzle::b128);
    const auto columns = k_major_descriptor(stage + L.a, Swizzle::b128);
    QN_UNROLL
    for (int k = 0; k < 4; ++k) ptx::wgmma<dtype_t<C.b_dtype>, dtype_t<C.a_dtype>>(sums, rows.advanced(32 * k), columns.advanced(32 * k), k > 0);
  };
  const auto add = [&](const Scales& s, const f32 (&sums)[C.tile_m / 2]) { add_scaled(s.b, s.a, sums, total); };
  prefetch_scales_of_part<C>(p, part);
  zero(total);
  if (part.steps > 0) multiply_scaled_stages<C.stages, C.tile_m / 2>(read, part.steps, products, load, add);
}

template <ScaledSwapConfig C>
QN_DEVICE void scaled_swap_ab_sm90(const ScaledSm90Params& p) {
  run_swapped<tiles_of(C), kScaledGroup>(p.gemm, [&](const DenseSwapPart& part, u32 smem, u32 warpgroup, f32 (&sums)[C.tile_m / 2]) {
    Consumer<C.stages> read{smem + dense_swap_smem(tiles_of(C)).barriers};
    multiply_scaled_part<C>(p, part, smem, warpgroup, read, sums);
  });
}

}  // namespace quern::gemm
