// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// As many blocks as multiprocessors, each of which takes tile after tile: while one is stored, the next is already loaded. Tiles
// go in groups of 8 along m, so that blocks that run together share rows of a and b in the L2.
#pragma once
#include "steps/step5_ring.cuh"

namespace quern::steps {

/// Calls f(row, column) with every tile of the block.
template <GemmConfig C, class F>
QN_DEVICE void each_tile(const GemmMapParams& p, const F& f) {
  constexpr u32 kGroup = 8;
  const u32 tiles_m = u32(p.m + C.tile_m - 1) / C.tile_m, tiles_n = u32(p.n + C.tile_n - 1) / C.tile_n;
  for (u32 index = blockIdx.x; index < tiles_m * tiles_n; index += gridDim.x) {
    const u32 group = index / (kGroup * tiles_n), inside = index - group * kGroup * tiles_n;
    const u32 rows = min_of(kGroup, tiles_m - group * kGroup), column = inside / rows;
    f(i32((group * kGroup + inside - column * rows) * C.tile_m), i32(column * C.tile_n));
  }
}

template <GemmConfig C>
QN_DEVICE void gemm_persistent(const GemmMapParams& p) {
  QN_SMEM(memory);
  const u32 smem = ptx::smem_address(memory);
  run_roles<C>(
      smem, [&](Producer<C.stages>& fill) { each_tile<C>(p, [&](i32 row, i32 column) { load_tile<C>(p, smem, fill, row, column); }); },
      [&](Consumer<C.stages>& read, u32 warpgroup) {
        each_tile<C>(p, [&](i32 row, i32 column) { multiply_tile<C>(p, smem, read, warpgroup, row, column); });
      });
}

}  // namespace quern::steps
