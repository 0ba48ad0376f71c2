// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Barriers, fences, programmatic dependent launch.
#pragma once
#include "quern/kit/emu/entry.cuh"

namespace quern::ptx {

/// Lanes in `mask` meet; what they wrote before is visible to them after.
QN_DEVICE void sync_warp(u32 mask = kFullMask) {
  emu::current()->runtime->collective(mask, emu::Collective::sync_warp, nullptr, nullptr, 0);
}
/// Every thread of the block meets. The line tells barriers apart: a warp whose lanes stand at two of them has
/// diverged.
QN_DEVICE void sync_block(u32 line = __builtin_LINE()) { emu::current()->runtime->barrier(0, 0, false, 0, line); }
/// sync_block that also returns whether any thread voted yes.
QN_DEVICE bool sync_block_or(bool vote, u32 line = __builtin_LINE()) {
  return emu::current()->runtime->barrier(0, 0, false, vote, line) != 0;
}
/// Named barrier 0..15 of `threads` (a multiple of 32): sync waits for all, arrive does not wait.
QN_DEVICE void bar_sync(int id, int threads, u32 line = __builtin_LINE()) {
  emu::current()->runtime->barrier(u32(id), u32(threads), false, 0, line);
}
QN_DEVICE void bar_arrive(int id, int threads, u32 line = __builtin_LINE()) {
  emu::current()->runtime->barrier(u32(id), u32(threads), true, 0, line);
}

QN_DEVICE void fence_block() { emu::current()->runtime->fence(emu::Scope::block); }
QN_DEVICE void fence_gpu() { emu::current()->runtime->fence(emu::Scope::gpu); }

/// Programmatic dependent launch: wait until the kernels this one depends on have finished; allow dependents to start.
QN_DEVICE void grid_dependency_wait() { emu::current()->runtime->grid_event(emu::GridEvent::wait); }
QN_DEVICE void grid_launch_dependents() { emu::current()->runtime->grid_event(emu::GridEvent::launch_dependents); }

QN_DEVICE u64 clock64() { return emu::current()->runtime->clock(); }

}  // namespace quern::ptx
