// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Scales of the kernels for many rows: three warps that neither load nor multiply copy them to shared memory by cp.async of 4 bytes, whatever their
// strides. Those of a stage arrive at the stage's full barrier, beside its operands; those of all of K have a ring of two tiles of their own.
// Where the warps that multiply fetched their scales themselves, 128 columns of K of a tile of 128 x 128 took 900 clocks, 730 with constant ones.
#pragma once
#include "quern/ops/gemm/scale_source.cuh"
#include "quern/ops/gemm/scaled_sm90_spec.h"
#include "quern/ops/gemm/tiles_sm90.cuh"

namespace quern::gemm {

/// Warps 1 to 3 of the block.
constexpr u32 kScaleWarps = 3;
constexpr int kScaleThreads = 32 * kScaleWarps;
/// Stages whose copies are in flight while those of the next are issued: one takes about 700 clocks, as a copy from memory does.
template <ScaledSm90Config C>
constexpr int kScalesInFlight = C.column_scales == 1 ? 0 : 2;
/// Arrivals of theirs that fill a stage of operands.
template <ScaledSm90Config C>
constexpr u32 kScaleFills = C.column_scales == 1 ? 0 : kScaleWarps;

template <ScaledSm90Config C>
using ScaleReader = Consumer<scaled_sm90_scale_stages(C)>;

/// A scale warp's place in the ring.
template <ScaledSm90Config C>
struct ScaleFill {
  static constexpr int kStages = scaled_sm90_scale_stages(C);
  Producer<kStages> fill;
  u32 oldest = 0;  ///< stage that is still to be announced
  int pending = 0;
};
template <ScaledSm90Config C>
QN_DEVICE ScaleFill<C> start_scales(u32 smem) {
  return {{smem + scaled_sm90_smem(C).barriers}};
}

/// The copies of the oldest stage have come.
template <ScaledSm90Config C>
QN_DEVICE void announce_scales(ScaleFill<C>& f) {
  ptx::sync_warp();
  if (ptx::lane_id() == 0) ptx::mbarrier_arrive(full_barrier<ScaleFill<C>::kStages>(f.fill.barriers, f.oldest));
  f.oldest = f.oldest + 1 == ScaleFill<C>::kStages ? 0 : f.oldest + 1;
}

/// By the scale warps, for `steps` stages of a tile, or one. P: parameters of a kernel or of one group of rows or columns.
template <ScaledSm90Config C, class P>
QN_DEVICE void fill_scales(ScaleFill<C>& f, u32 smem, const P& p, const DenseTile& tile, int steps) {
  constexpr int kCount = scaled_sm90_scales(C), kLoads = (kCount + kScaleThreads - 1) / kScaleThreads;
  const i32 thread = i32(threadIdx.x) - 32;
  ScaleSource next[kLoads];
  QN_UNROLL
  for (int i = 0; i < kLoads; ++i) {
    const i32 index = thread + kScaleThreads * i, of_b = index - C.tile_m;
    const i32 column = C.column_scales == 0 ? max_of(tile.column, (tile.column / 128 + of_b) * 128) : tile.column + of_b;
    if (index < C.tile_m) next[i] = scale_source(p.scales_a, tile.row + index, p.gemm.m);
    else if (index < kCount) next[i] = scale_source(p.scales_b, column, p.gemm.n);
    else next[i] = {nullptr, 0};
  }
  QN_NO_UNROLL
  for (int step = 0; step < steps; ++step) {
    ptx::mbarrier_wait(empty_barrier<ScaleFill<C>::kStages>(f.fill.barriers, f.fill.stage), f.fill.parity);
    const u32 to = smem + u32(scaled_sm90_smem(C).scales) + 4 * (f.fill.stage * kCount + u32(thread));
    QN_UNROLL
    for (int i = 0; i < kLoads; ++i) {
      if (next[i].first == nullptr) continue;
      ptx::cp_async<4>(to + u32(4 * kScaleThreads * i), next[i].first);
      next[i].first += next[i].stride;
    }
    ptx::cp_async_commit();
    end_fill(f.fill);
    if (f.pending < kScalesInFlight<C>) {
      ++f.pending;
      continue;
    }
    ptx::cp_async_wait<kScalesInFlight<C>>();
    announce_scales(f);
  }
}
/// Behind the last tile.
template <ScaledSm90Config C>
QN_DEVICE void finish_scales(ScaleFill<C>& f) {
  ptx::cp_async_wait_all();
  for (; f.pending > 0; --f.pending) announce_scales(f);
}

/// Scale `index` of a stage: of the tile's rows of a, then of its blocks or rows of b. As a T of two, that and the next one.
template <ScaledSm90Config C, class T = f32>
QN_DEVICE T scale_of_stage(const u8* memory, u32 stage, int index) {
  return ptx::ld_shared<T>(memory + scaled_sm90_smem(C).scales + 4 * (stage * u32(scaled_sm90_scales(C)) + u32(index)));
}

}  // namespace quern::gemm
