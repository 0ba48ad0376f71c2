// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Two-level sums of 8-bit operands: the tensor cores sum a stage of 128 columns of K, whose products a thread then scales and
// adds to sums of its own. The tensor cores keep about 14 bits of a sum of e4m3 (docs/emulator.md), so longer runs lose more.
#pragma once
#include "quern/kit/kit.cuh"
#include "quern/kit/wgmma_ring.cuh"
#include "quern/ops/gemm/scale_ring_sm90.cuh"

namespace quern::gemm {

/// Where the scales of `row` begin (past `rows`: of the last one, for results that are not stored).
QN_DEVICE const f32* scales_of_row(const Scales& s, i32 row, i32 rows) {
  return static_cast<const f32*>(s.data) + i64(min_of(row, rows - 1) >> s.row_shift) * s.row_stride;
}
/// Of a row of scales, from a stage on.
QN_DEVICE ScaleSource scale_source(const Scales& s, i32 row, i32 rows, i32 first_step = 0) {
  return {scales_of_row(s, row, rows) + i64(first_step) * s.column_stride, s.column_stride};
}

/// Two warpgroups that issue the products of a stage in turns: each group of products then has the tensor cores for itself, and the sums of one
/// are scaled meanwhile. Products issued together are done together, and leave the tensor cores idle while both scale (8192^3: 13 % of the
/// time). The first `free` steps of a tile are not in turns, so that one warpgroup may still store its results.
struct Turns {
  u32 warpgroup;  // 0 or 1
  int free;
};
constexpr int kTurnThreads = 2 * kWarpgroupSize;
/// Before the products of a step: warpgroup 0 waits for the step before of 1, which waits for this one of 0.
QN_DEVICE void begin_turn(const Turns& t, int step) {
  if (step > t.free) ptx::bar_sync(kDenseSm90TurnBarrier + int(t.warpgroup), kTurnThreads);
}
QN_DEVICE void end_turn(const Turns& t, int step, int steps) {
  const int waits = t.warpgroup == 0 ? step : step + 1;  // the other's step
  if (waits > t.free && waits < steps) ptx::bar_arrive(kDenseSm90TurnBarrier + 1 - int(t.warpgroup), kTurnThreads);
}
/// A warpgroup that waits for no other.
struct NoTurns {};
QN_DEVICE void begin_turn(const NoTurns&, int) {}
QN_DEVICE void end_turn(const NoTurns&, int, int) {}

/// `at_once` stages from `step`: their products one behind the other, then their sums scaled, in order. begin() and end(): around the products.
template <int at_once, int stages, int count, class Ring, class Products, class Load, class Add, class Begin, class End>
QN_DEVICE void multiply_scaled_batch(Consumer<stages>& read, int step, f32 (&sums)[at_once][count], Ring& ring, const Products& products,
                                     const Load& load, const Add& add, const Begin& begin, const End& end) {
  Consumer<stages> ahead = read;
  u32 index[at_once];
  QN_UNROLL
  for (int i = 0; i < at_once; ++i) {
    begin_read(ahead);
    index[i] = ahead.stage;
    skip_read(ahead);
  }
  begin();
  hold(sums);
  ptx::wgmma_fence();
  QN_UNROLL
  for (int i = 0; i < at_once; ++i) products(index[i], sums[i]);
  ptx::wgmma_commit();
  end();
  hold(sums);
  wait_scales(ring);
  decltype(load(ring, 0)) scales[at_once];
  QN_UNROLL
  for (int i = 0; i < at_once; ++i) scales[i] = load(ring, step + i);
  QN_UNROLL
  for (int i = 0; i < at_once; ++i) fetch_scales(ring);
  ptx::wgmma_wait<0>();
  hold(sums);
  QN_UNROLL
  for (int i = 0; i < at_once; ++i) end_read(read);
  QN_UNROLL
  for (int i = 0; i < at_once; ++i) add(scales[i], sums[i]);
}

/// Reads `steps` stages, at_once in a batch; products(stage, sums) issues the instructions of one, the first of which does not add, load(ring, step)
/// gives a thread's scales of it, and add(scales, sums) adds its products to the thread's sums. Two sets of sums of which one is scaled while the other
/// is in flight make ptxas serialise wgmma (C7510).
template <int count, int stages, int scales, int depth, int at_once, int threads, class Products, class Load, class Add, class Turn>
QN_DEVICE void multiply_scaled_stages(Consumer<stages>& read, int steps, ScaleRing<scales, depth, at_once, threads>& ring, const Products& products, const Load& load,
                                      const Add& add, const Turn& turn) {
  f32 sums[at_once][count];
  zero(sums);
  int step = 0;
  QN_NO_UNROLL
  for (; step + at_once <= steps; step += at_once)
    multiply_scaled_batch<at_once>(read, step, sums, ring, products, load, add, [&] { begin_turn(turn, step); }, [&] { end_turn(turn, step, steps); });
  if constexpr (at_once > 1) {  // what is left of a batch
    f32 rest[1][count];
    zero(rest);
    QN_NO_UNROLL
    for (; step < steps; ++step) multiply_scaled_batch<1>(read, step, rest, ring, products, load, add, [] {}, [] {});
  }
}

}  // namespace quern::gemm
