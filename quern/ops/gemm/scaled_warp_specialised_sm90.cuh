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

template <ScaledSm90Config C>
using TileScales = ScaleRing<scaled_sm90_scales(C), kScaledSm90Depth, 1, scaled_sm90_sharers(C)>;

/// Opens a ring of scales for a tile. P: parameters of a kernel or of one group of rows.
template <ScaledSm90Config C, class P>
QN_DEVICE void open_tile(TileScales<C>& ring, const P& p, const DenseTile& tile, u32 first_row) {
  QN_SMEM(memory);
  constexpr i32 kRows = scaled_sm90_rows(C);
  const i32 sharers = i32(first_row) / kRows + (kRows == 16 ? i32(warp_of_warpgroup()) : 0);
  u8* const here = memory + dense_sm90_smem(tiles_of(C)).bytes + sharers * TileScales<C>::kBytes;
  open_scales(ring, here, (p.gemm.k + kScaledGroup - 1) / kScaledGroup, [&](int i) {
    if (i < kRows) return scale_source(p.scales_a, tile.row + kRows * sharers + i, p.gemm.m);
    const i32 column = C.column_scales == 2 ? tile.column + i - kRows : max_of(tile.column, (tile.column / 128 + i - kRows) * 128);
    return scale_source(p.scales_b, column, p.gemm.n);
  }, kScaledSm90Barrier + sharers);
}

/// A thread's scales of a stage: of its two rows, and of each 128 rows of b; those of each row are read where they are used.
template <ScaledSm90Config C>
struct ScaledOfThread {
  f32 a[2], b[scaled_sm90_blocks(C)];
  int step;
};

/// total += the sums of a stage, scaled.
template <ScaledSm90Config C>
QN_DEVICE void add_stage(const TileScales<C>& ring, const ScaledOfThread<C>& s, int in_block, const f32 (&sums)[C.tile_n / 2], f32 (&total)[C.tile_n / 2]) {
  constexpr int kColumns = C.column_scales == 0 ? scaled_sm90_columns(C) : C.column_scales == 1 ? C.tile_n : 8;
  QN_UNROLL
  for (int c = 0; c < C.tile_n; c += kColumns) {
    f32 of_b[2] = {1.f, 1.f};  // of even and odd columns
    if constexpr (C.column_scales == 2) {
      const u32x2 pair = scale_of_stage<u32x2>(ring, s.step, scaled_sm90_rows(C) + c + 2 * int(ptx::lane_id() % 4));
      of_b[0] = __builtin_bit_cast(f32, pair.x), of_b[1] = __builtin_bit_cast(f32, pair.y);
    } else if constexpr (C.column_scales == 0) {
      of_b[0] = s.b[0];
      QN_UNROLL
      for (int i = 1; i < scaled_sm90_blocks(C); ++i)
        if (in_block + c >= 128 * i) of_b[0] = s.b[i];
      of_b[1] = of_b[0];
    }
    const f32 scale[4] = {s.a[0] * of_b[0], s.a[0] * of_b[1], s.a[1] * of_b[0], s.a[1] * of_b[1]};
    QN_UNROLL
    for (int i = c / 2; i < (c + kColumns) / 2; ++i) total[i] = ptx::fma(sums[i], scale[i % 4], total[i]);
  }
}

template <ScaledSm90Config C>
QN_DEVICE void multiply_scaled_tile(const DenseTile& tile, u32 smem, u32 first_row, TileScales<C>& ring, Consumer<C.stages>& read,
                                    f32 (&total)[C.tile_n / 2]) {
  constexpr auto L = dense_sm90_smem(tiles_of(C));
  const int in_block = tile.column % 128, row = int(first_row + 16 * warp_of_warpgroup()) % scaled_sm90_rows(C) + int(ptx::lane_id()) / 4;
  const auto load = [&](const TileScales<C>& from, int step) {
    ScaledOfThread<C> s;
    s.step = step;
    QN_UNROLL
    for (int i = 0; i < 2; ++i) s.a[i] = scale_of_stage(from, step, row + 8 * i);
    QN_UNROLL
    for (int i = 0; i < scaled_sm90_blocks(C); ++i) s.b[i] = C.column_scales == 0 ? scale_of_stage(from, step, scaled_sm90_rows(C) + i) : 1.f;
    return s;
  };
  const auto products = [&](u32 index, f32 (&sums)[C.tile_n / 2]) {
    const u32 stage = smem + index * L.stage;
    const auto rows = k_major_descriptor(stage + L.a + first_row * 128, Swizzle::b128);
    const auto columns = k_major_descriptor(stage + L.b, Swizzle::b128);
    QN_UNROLL
    for (int k = 0; k < 4; ++k) ptx::wgmma<dtype_t<C.a_dtype>, dtype_t<C.b_dtype>>(sums, rows.advanced(32 * k), columns.advanced(32 * k), k > 0);
  };
  const auto add = [&](const ScaledOfThread<C>& s, const f32 (&sums)[C.tile_n / 2]) { add_stage<C>(ring, s, in_block, sums, total); };
  multiply_scaled_stages<C.tile_n / 2>(read, ring.steps, ring, products, load, add, Turns{first_row / 64, C.stages});
}

/// total *= the scales of the thread's columns.
template <ScaledSm90Config C>
QN_DEVICE void scale_columns(const ScaledSm90Params& p, i32 column, f32 (&total)[C.tile_n / 2]) {
  QN_UNROLL
  for (int i = 0; i < C.tile_n / 8; ++i) {
    QN_UNROLL
    for (int j = 0; j < 2; ++j) {
      const i32 at = column + 8 * i + 2 * i32(ptx::lane_id() % 4) + j;
      const f32 scale = ptx::ld_global_nc<f32>(scales_of_row(p.scales_b, at, p.gemm.n));
      total[4 * i + j] = total[4 * i + j] * scale;
      total[4 * i + 2 + j] = total[4 * i + 2 + j] * scale;
    }
  }
}

template <ScaledSm90Config C>
QN_DEVICE void multiply_scaled_tiles(const ScaledSm90Params& p, u32 smem, u32 warpgroup) {
  using Tiles = DenseTiles<tiles_of(C)>;
  const auto tiles = Tiles::of(p.gemm);
  const u32 count = Tiles::count(tiles), first_row = warpgroup * 64;
  Consumer<C.stages> read{smem + dense_sm90_smem(tiles_of(C)).barriers};
  DenseTile tile = Tiles::at(tiles, blockIdx.x);
  TileScales<C> ring;
  open_tile<C>(ring, p, tile, first_row);
  for (u32 index = blockIdx.x; index < count; index += gridDim.x) {
    f32 total[C.tile_n / 2];
    zero(total);
    multiply_scaled_tile<C>(tile, smem, first_row, ring, read, total);
    const DenseTile done = tile;
    if (index + gridDim.x < count) {  // while the results of this one are stored
      tile = Tiles::at(tiles, index + gridDim.x);
      open_tile<C>(ring, p, tile, first_row);
    } else {
      ptx::grid_launch_dependents();
    }
    if constexpr (C.column_scales == 1) scale_columns<C>(p, done.column, total);
    write_rows<tiles_of(C)>(p.gemm, done.row + i32(first_row), done.column, total);
  }
}

template <ScaledSm90Config C>
QN_DEVICE void scaled_warp_specialised_sm90(const ScaledSm90Params& p) {
  run_warpgroups<tiles_of(C)>(p.gemm, 8, [&](u32 smem) { load_tiles<tiles_of(C), kScaledGroup>(p.gemm, smem); },
                              [&](u32 smem, u32 warpgroup) { multiply_scaled_tiles<C>(p, smem, warpgroup); });
}

}  // namespace quern::gemm
