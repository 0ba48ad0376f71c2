// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, j] = sum_x scales_a(i, x) scales_b(j, x) a[i, x] b[j, x] + c[i, j] + bias[j], for sm_90a and few rows of a
// dense_swap_ab_sm90.cuh with stages of 128 columns of 8 bits, whose products are scaled and added to a second set of sums.
#pragma once
#include "quern/ops/gemm/scaled_multiply_sm90.cuh"
#include "quern/ops/gemm/swap_ab_sm90.cuh"

namespace quern::gemm {

/// What a thread's products of a stage are scaled by.
template <int kSums>
struct ScaledSwapOfThread {
  f32 scale[kSums];
};

/// A warpgroup's scales: of its 64 rows of b, then of the rows of a.
template <ScaledSwapConfig C>
using PartScales = ScaleRing<scaled_swap_scales(tiles_of(C)), scaled_swap_depth(tiles_of(C)), scaled_swap_at_once(tiles_of(C))>;

/// Opens the ring for a part of K. P: parameters of a kernel or of one group of rows. Scales of a are read behind the kernel before.
template <ScaledSwapConfig C, class P>
QN_DEVICE void open_part(PartScales<C>& ring, const P& p, const DenseSwapPart& part, u32 warpgroup) {
  QN_SMEM(memory);
  const i32 column = part.column + 64 * i32(warpgroup);
  u8* const here = memory + dense_swap_smem(tiles_of(C)).bytes + i32(warpgroup) * PartScales<C>::kBytes;
  ptx::grid_dependency_wait();
  open_scales(ring, here, C.of_all_k ? 1 : part.steps, [&](int i) {
    return i < 64 ? scale_source(p.scales_b, column + i, p.gemm.n, part.first_step) : scale_source(p.scales_a, part.row + i - 64, p.gemm.m, part.first_step);
  }, kScaledSwapBarrier + int(warpgroup));
}

template <ScaledSwapConfig C, class P>
QN_DEVICE void multiply_scaled_part(const P& p, const DenseSwapPart& part, u32 smem, u32 warpgroup, Consumer<C.stages>& read,
                                    f32 (&total)[C.tile_m / 2]) {
  constexpr auto L = dense_swap_smem(tiles_of(C));
  constexpr int kSums = C.tile_m / 2;
  const int lane = int(ptx::lane_id()), row = 16 * int(warp_of_warpgroup()) + lane / 4;
  PartScales<C> ring;
  open_part<C>(ring, p, part, warpgroup);
  const auto load = [&](const PartScales<C>& from, int step) {
    const f32 of_b[2] = {scale_of_stage(from, step, row), scale_of_stage(from, step, row + 8)};
    ScaledSwapOfThread<kSums> s;
    QN_UNROLL
    for (int i = 0; i < kSums; i += 4) {
      const u32x2 pair = scale_of_stage<u32x2>(from, step, 64 + 2 * i + lane % 4 * 2);
      const f32 of_a[2] = {__builtin_bit_cast(f32, pair.x), __builtin_bit_cast(f32, pair.y)};
      QN_UNROLL
      for (int j = 0; j < 4; ++j) s.scale[i + j] = of_b[j / 2] * of_a[j % 2];
    }
    return s;
  };
  const auto products = [&](u32 index, f32 (&sums)[kSums]) {
    const u32 stage = smem + index * L.stage;
    const auto rows = k_major_descriptor(stage + L.b + warpgroup * 64 * 128, Swizzle::b128);
    const auto columns = k_major_descriptor(stage + L.a, Swizzle::b128);
    QN_UNROLL
    for (int k = 0; k < 4; ++k) ptx::wgmma<dtype_t<C.b_dtype>, dtype_t<C.a_dtype>>(sums, rows.advanced(32 * k), columns.advanced(32 * k), k > 0);
  };
  zero(total);
  if constexpr (C.of_all_k) {
    NoScales<PartScales<C>::kAtOnce> none;
    multiply_scaled_stages<kSums>(read, part.steps, none, products, [](const NoScales<PartScales<C>::kAtOnce>&, int) { return Unscaled{}; },
                                  [&](const Unscaled&, const f32 (&sums)[kSums]) {
                                    QN_UNROLL
                                    for (int i = 0; i < kSums; ++i) total[i] = total[i] + sums[i];
                                  });
    wait_scales(ring);
    const ScaledSwapOfThread<kSums> s = load(ring, 0);
    QN_UNROLL
    for (int i = 0; i < kSums; ++i) total[i] = total[i] * s.scale[i];
  } else {
    multiply_scaled_stages<kSums>(read, part.steps, ring, products, load, [&](const ScaledSwapOfThread<kSums>& s, const f32 (&sums)[kSums]) {
      QN_UNROLL
      for (int i = 0; i < kSums; ++i) total[i] = ptx::fma(sums[i], s.scale[i], total[i]);
    });
  }
}

template <ScaledSwapConfig C>
QN_DEVICE void scaled_swap_ab_sm90(const ScaledSm90Params& p) {
  run_swapped<tiles_of(C), kScaledGroup>(p.gemm, [&](const DenseSwapPart& part, u32 smem, u32 warpgroup, f32 (&sums)[C.tile_m / 2]) {
    Consumer<C.stages> read{smem + dense_swap_smem(tiles_of(C)).barriers};
    multiply_scaled_part<C>(p, part, smem, warpgroup, read, sums);
  });
}

}  // namespace quern::gemm
