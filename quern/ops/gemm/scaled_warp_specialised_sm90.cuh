// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, j] = sum_x scales_a(i, x) scales_b(j, x) a[i, x] b[j, x] + c[i, j] + bias[j], for sm_90a
// The tiles, the ring and the stores of dense_warp_specialised_sm90.cuh, with stages of 128 columns of 8 bits. Each of the two
// warpgroups has half of a tile's rows: while one scales the products of a stage, the other's are in the tensor cores.
#pragma once
#include "quern/ops/gemm/scaled_multiply_sm90.cuh"
#include "quern/ops/gemm/tiles_sm90.cuh"

namespace quern::gemm {

/// Columns of a tile that share a scale of b for certain: tiles begin at multiples of 64.
constexpr int kScaledColumns = 64;

/// A thread's scales of a stage: of its two rows of a, and of b: of each 64 rows, or (column_scales 2) of the rows lane, lane + 32 ..
template <ScaledSm90Config C>
struct ScaledOfThread {
  static constexpr int kOfB = C.column_scales == 2 ? (C.tile_n + 31) / 32 : C.column_scales == 1 ? 1 : C.tile_n / kScaledColumns;
  f32 a[2], b[kOfB];
};

/// total += the sums of a stage, scaled.
template <ScaledSm90Config C>
QN_DEVICE void add_stage(const ScaledOfThread<C>& s, const f32 (&sums)[C.tile_n / 2], f32 (&total)[C.tile_n / 2]) {
  if constexpr (C.column_scales == 2) {
    add_scaled(s.a, s.b, sums, total);
  } else {
    constexpr int kChunks = ScaledOfThread<C>::kOfB, kOfChunk = C.tile_n / 2 / kChunks;
    QN_UNROLL
    for (int c = 0; c < kChunks; ++c) {
      const f32 scale[2] = {s.a[0] * s.b[c], s.a[1] * s.b[c]};
      QN_UNROLL
      for (int i = c * kOfChunk; i < (c + 1) * kOfChunk; ++i) total[i] = ptx::fma(sums[i], scale[i / 2 % 2], total[i]);
    }
  }
}

/// P: parameters of a kernel or of one group of rows.
template <ScaledSm90Config C, class P>
QN_DEVICE void multiply_scaled_tile(const P& p, const DenseTile& tile, u32 smem, u32 first_row, int steps,
                                    Consumer<C.stages>& read, f32 (&total)[C.tile_n / 2]) {
  using Scales = ScaledOfThread<C>;
  constexpr auto L = dense_sm90_smem(tiles_of(C));
  const i32 row = tile.row + i32(first_row + 16 * warp_of_warpgroup() + ptx::lane_id() / 4);
  const f32* const a[2] = {scales_of_row(p.scales_a, row, p.gemm.m), scales_of_row(p.scales_a, row + 8, p.gemm.m)};
  const f32* b[Scales::kOfB];
  QN_UNROLL
  for (int i = 0; i < Scales::kOfB; ++i)
    b[i] = scales_of_row(p.scales_b, tile.column + (C.column_scales == 2 ? i32(ptx::lane_id()) + 32 * i : kScaledColumns * i), p.gemm.n);
  const auto load = [&](int step) {
    Scales s;
    QN_UNROLL
    for (int i = 0; i < 2; ++i) s.a[i] = scale_of_group(a[i], p.scales_a, step);
    QN_UNROLL
    for (int i = 0; i < Scales::kOfB; ++i) s.b[i] = C.column_scales == 1 ? 1.f : scale_of_group(b[i], p.scales_b, step);
    return s;
  };
  const auto products = [&](u32 index, f32 (&sums)[C.tile_n / 2]) {
    const u32 stage = smem + index * L.stage;
    const auto rows = k_major_descriptor(stage + L.a + first_row * 128, Swizzle::b128);
    const auto columns = k_major_descriptor(stage + L.b, Swizzle::b128);
    QN_UNROLL
    for (int k = 0; k < 4; ++k) ptx::wgmma<dtype_t<C.a_dtype>, dtype_t<C.b_dtype>>(sums, rows.advanced(32 * k), columns.advanced(32 * k), k > 0);
  };
  const auto add = [&](const Scales& s, const f32 (&sums)[C.tile_n / 2]) { add_stage<C>(s, sums, total); };
  multiply_scaled_stages<C.stages, C.tile_n / 2>(read, steps, products, load, add);
}

/// total *= the scales of the thread's columns.
template <ScaledSm90Config C>
QN_DEVICE void scale_columns(const ScaledSm90Params& p, i32 column, f32 (&total)[C.tile_n / 2]) {
  QN_UNROLL
  for (int i = 0; i < C.tile_n / 8; ++i) {
    QN_UNROLL
    for (int j = 0; j < 2; ++j) {
      const i32 at = column + 8 * i + 2 * i32(ptx::lane_id() % 4) + j;
      const f32 scale = scale_of_group(scales_of_row(p.scales_b, at, p.gemm.n), p.scales_b, 0);
      total[4 * i + j] = total[4 * i + j] * scale;
      total[4 * i + 2 + j] = total[4 * i + 2 + j] * scale;
    }
  }
}

/// For a block's first tile: later ones find their scales in the L2, where other blocks had them.
template <ScaledSm90Config C, class P>
QN_DEVICE void prefetch_scales_of_tile(const P& p, const DenseTile& tile, u32 first_row) {
  const i32 thread = i32(thread_of_warpgroup()), groups = (p.gemm.k + kScaledGroup - 1) / kScaledGroup;
  if constexpr (C.column_scales != 1) prefetch_scales(p.scales_b, tile.column, C.tile_n, p.gemm.n, 0, groups, thread, kWarpgroupSize);
  prefetch_scales(p.scales_a, tile.row + i32(first_row), 64, p.gemm.m, 0, groups, thread, kWarpgroupSize);
}

template <ScaledSm90Config C>
QN_DEVICE void multiply_scaled_tiles(const ScaledSm90Params& p, u32 smem, u32 warpgroup) {
  const auto tiles = DenseTiles<tiles_of(C)>::of(p.gemm);
  const u32 count = DenseTiles<tiles_of(C)>::count(tiles), first_row = warpgroup * 64;
  Consumer<C.stages> read{smem + dense_sm90_smem(tiles_of(C)).barriers};
  prefetch_scales_of_tile<C>(p, DenseTiles<tiles_of(C)>::at(tiles, blockIdx.x), first_row);
  for (u32 index = blockIdx.x; index < count; index += gridDim.x) {
    const DenseTile tile = DenseTiles<tiles_of(C)>::at(tiles, index);
    f32 total[C.tile_n / 2];
    zero(total);
    multiply_scaled_tile<C>(p, tile, smem, first_row, (p.gemm.k + kScaledGroup - 1) / kScaledGroup, read, total);
    if (index + gridDim.x >= count) ptx::grid_launch_dependents();
    if constexpr (C.column_scales == 1) scale_columns<C>(p, tile.column, total);
    write_rows<tiles_of(C)>(p.gemm, tile.row + i32(first_row), tile.column, total);
  }
}

template <ScaledSm90Config C>
QN_DEVICE void scaled_warp_specialised_sm90(const ScaledSm90Params& p) {
  static_assert(C.tile_n % kScaledColumns == 0 && C.column_scales != 2);
  run_warpgroups<tiles_of(C)>(p.gemm, 8, [&](u32 smem) { load_tiles<tiles_of(C), kScaledGroup>(p.gemm, smem); },
                              [&](u32 smem, u32 warpgroup) { multiply_scaled_tiles<C>(p, smem, warpgroup); });
}

}  // namespace quern::gemm
