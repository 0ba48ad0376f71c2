// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Scales on Hopper. Those of a for 128 columns come by TMA where tiles have slots (bricks/gemm/sm90/tile_slots.cuh) and they lie as it
// wants them. Others, and these where they do not: warps that neither load nor multiply copy them to shared memory by cp.async of 4 bytes,
// whatever their strides. Each lane's copies of a stage arrive by themselves at the stage's full barrier, beside its operands, so the lanes
// go on to the next stage that is free; those of all of K have a ring of their own, of a stage for a tile. Where lanes waited for the
// copies of one stage with those of 2 or 4 later ones in flight, and one lane arrived for its warp, 64 x 7168 x 2048 took 7.0 us, 6.4 so
// (one H200). Where the warps that multiply fetched their scales themselves, 128 columns of K of a tile of 128 x 128 took 900 clocks, 730
// with constant ones.
#pragma once
#include "quern/bricks/gemm/scale_source.cuh"
#include "quern/bricks/gemm/sm90/scaled_spec.h"
#include "quern/kit/kit.cuh"

namespace quern::gemm {

/// Arrivals of theirs that fill a stage of scales, one a lane.
template <ScaleStages S>
constexpr u32 kScaleArrivals = 32 * u32(S.warps);
/// Those of them that a stage of operands waits for.
template <ScaleStages S>
constexpr u32 kScaleFills = S.own_barriers ? 0 : kScaleArrivals<S>;

/// By one thread, before the barrier of the block behind which the others begin: `readers` warps read the scales of all of K.
template <ScaleStages S>
QN_DEVICE void init_scales(u32 smem, u32 readers) {
  if constexpr (S.own_barriers != 0) pipeline_init<S.stages>(smem + u32(S.barriers), readers, kScaleArrivals<S>);
}

/// A scale warp's place in the ring.
template <ScaleStages S>
QN_DEVICE Producer<S.stages> start_scales(u32 smem) {
  return {smem + u32(S.barriers)};
}

/// By the scale warps, for `steps` stages from first_step on of the tile at `row` and `column`. Of all of K: one stage. P: parameters of a
/// kernel or of one group of rows or columns.
template <ScaleStages S, class P>
QN_DEVICE void fill_scales(Producer<S.stages>& fill, u32 smem, const P& p, i32 row, i32 column, int first_step, int steps) {
  constexpr int kCount = S.rows + S.columns, kThreads = 32 * S.warps, kLoads = (kCount + kThreads - 1) / kThreads;
  const i32 thread = i32(threadIdx.x) - 32 * S.first_warp;
  ScaleSource next[kLoads];
  QN_UNROLL
  for (int i = 0; i < kLoads; ++i) {
    const i32 index = thread + kThreads * i, of_b = index - S.rows;
    if (index < S.rows) next[i] = scale_source(p.scales_a, row + scale_row(S.together, index), p.gemm.m, first_step);
    else if (index < kCount) next[i] = scale_source(p.scales_b, column + S.step * of_b, p.gemm.n, first_step);
    else next[i] = {nullptr, 0};
  }
  QN_NO_UNROLL
  for (int step = 0; step < (S.own_barriers ? 1 : steps); ++step) {
    ptx::mbarrier_wait(empty_barrier<S.stages>(fill.barriers, fill.stage), fill.parity);
    const u32 to = smem + u32(S.memory) + 4 * fill.stage * S.pitch;
    QN_UNROLL
    for (int i = 0; i < kLoads; ++i) {
      if (next[i].first == nullptr) continue;
      ptx::cp_async<4>(to + u32(4 * scale_place(S.boxes, thread + kThreads * i)), next[i].first);
      next[i].first += next[i].stride;
    }
    ptx::cp_async_arrive(full_barrier<S.stages>(fill.barriers, fill.stage));  // at once, if the lane has none
    end_fill(fill);
  }
}

/// Where scales of a come by TMA: bytes that they add to those a stage announces; and arrivals that fill a stage beside its operands'.
template <ScaleStages S>
QN_DEVICE u32 boxed_scale_bytes(const ScaleBoxes& boxes) {
  return S.boxes != 0 && boxes.used ? 4 * u32(kScaleBoxRows * S.boxes) : 0;
}
template <ScaleStages S>
QN_DEVICE u32 scale_fills(const ScaleBoxes& boxes) {
  return S.boxes != 0 && boxes.used ? 0 : kScaleFills<S>;
}
/// How many rows of a box come before that of a tile which begins at `row`.
QN_DEVICE u32 rows_before_boxed(const ScaleBoxes& boxes, i32 row) { return boxes.used ? u32(row) % 4 : 0; }
/// By the thread that loads: those of a tile's rows from `row` on, of column `column` of the map, to a stage.
template <ScaleStages S>
QN_DEVICE void load_boxed_scales(u32 smem, const ScaleBoxes& boxes, u32 full, u32 stage, i32 row, i32 column) {
  if (S.boxes == 0 || !boxes.used) return;
  const u32 to = smem + u32(S.memory) + 4 * stage * u32(S.pitch);
  QN_UNROLL
  for (i32 i = 0; i < S.boxes; ++i)
    ptx::tma_load(to + u32(4 * kScaleBoxPitch * i), &boxes.map, full, CachePolicy::evict_normal, row / 4 * 4 + 128 * i, column);
}

/// Behind the last tile: a thread does not exit while copies of its own are in flight.
QN_DEVICE void finish_scales() { ptx::cp_async_wait_all(); }

/// Bytes of a stage: scales of the tile's rows of a, then of its rows of b or of each S.step of them.
template <ScaleStages S>
constexpr u32 kScaleBytes = 4 * u32(S.pitch);
/// The scale `bytes` behind the first of the first stage; as a T of more, that and the next ones.
template <ScaleStages S, class T = f32>
QN_DEVICE T scale_at(const u8* memory, u32 bytes) {
  return ptx::ld_shared<T>(memory + S.memory + bytes);
}
/// It and its neighbour.
template <ScaleStages S>
QN_DEVICE void two_scales_at(const u8* memory, u32 bytes, f32 (&two)[2]) {
  const u32x2 pair = scale_at<S, u32x2>(memory, bytes);
  two[0] = ptx::f32_of_bits(pair.x), two[1] = ptx::f32_of_bits(pair.y);
}

}  // namespace quern::gemm
