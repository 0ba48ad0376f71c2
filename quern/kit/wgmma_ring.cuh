// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// A warpgroup's walk over a ring of stages with wgmma: pipeline.cuh's Consumer, whose stages are operands in shared memory.
//
//   zero(sums);
//   const u32 last = multiply_stages(read, steps, sums, multiply, free);
//   ...                                     the products of the last stage may still be in flight
//   finish_stages(steps, last, sums, free);
//
// multiply(stage) issues the instructions of one stage, free(stage) gives back one that has been read: release(read, stage).
#pragma once
#include "quern/kit/pipeline.cuh"
#include "quern/kit/wgmma.cuh"

namespace quern {

template <int count>
QN_DEVICE void zero(f32 (&sums)[count]) {
  QN_UNROLL
  for (int i = 0; i < count; ++i) sums[i] = 0.f;
}
template <int tiles, int count>
QN_DEVICE void zero(f32 (&sums)[tiles][count]) {
  QN_UNROLL
  for (int m = 0; m < tiles; ++m) zero(sums[m]);
}
template <int count>
QN_DEVICE void hold(f32 (&sums)[count]) {
  ptx::wgmma_hold(sums);
}
template <int tiles, int count>
QN_DEVICE void hold(f32 (&sums)[tiles][count]) {
  QN_UNROLL
  for (int m = 0; m < tiles; ++m) ptx::wgmma_hold(sums[m]);
}

/// One group of instructions stays in flight, so that the tensor cores have the next one when they end one: a stage is free
/// when the group behind its own has been issued. Returns the last stage.
template <int stages, int blocks, class Sums, class Multiply, class Free>
QN_DEVICE u32 multiply_stages(Consumer<stages, blocks>& read, int steps, Sums& sums, const Multiply& multiply, const Free& free) {
  u32 before = 0;
  QN_NO_UNROLL
  for (int step = 0; step < steps; ++step) {
    begin_read(read);
    hold(sums);
    ptx::wgmma_fence();
    multiply(read.stage);
    ptx::wgmma_commit();
    hold(sums);
    ptx::wgmma_wait<1>();
    if (step > 0) free(before);
    before = read.stage;
    skip_read(read);
  }
  return before;
}
template <class Sums, class Free>
QN_DEVICE void finish_stages(int steps, u32 last, Sums& sums, const Free& free) {
  ptx::wgmma_wait<0>();
  hold(sums);
  if (steps > 0) free(last);
}

}  // namespace quern
