// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Barriers (9.7.13.1 bar, 9.7.13.2 bar.warp.sync), fences (9.7.13.4 membar), dependent launch (9.7.13.13
// griddepcontrol).
#pragma once
#include "quern/kit/ptx/entry.cuh"

namespace quern::ptx {

/// Lanes in `mask` meet; what they wrote before is visible to them after.
QN_DEVICE void sync_warp(u32 mask = kFullMask) { asm volatile("bar.warp.sync %0;" ::"r"(mask) : "memory"); }
/// Every thread of the block meets.
QN_DEVICE void sync_block() { asm volatile("bar.sync 0;" ::: "memory"); }
/// sync_block that also returns whether any thread voted yes.
QN_DEVICE bool sync_block_or(bool vote) {
  u32 out;
  asm volatile("{\n.reg .pred p, q;\nsetp.ne.u32 p, %1, 0;\nbar.red.or.pred q, 0, p;\nselp.u32 %0, 1, 0, q;\n}"
               : "=r"(out)
               : "r"(u32(vote))
               : "memory");
  return out != 0;
}
/// Named barrier 0..15 of `threads` (a multiple of 32): sync waits for all, arrive does not wait.
QN_DEVICE void bar_sync(int id, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
QN_DEVICE void bar_arrive(int id, int threads) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory"); }

QN_DEVICE void fence_block() { asm volatile("membar.cta;" ::: "memory"); }
QN_DEVICE void fence_gpu() { asm volatile("membar.gl;" ::: "memory"); }

/// Programmatic dependent launch: wait until the kernels this one depends on have finished; allow dependents to start.
QN_DEVICE void grid_dependency_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
QN_DEVICE void grid_launch_dependents() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// 10.23 %clock64
QN_DEVICE u64 clock64() {
  u64 cycles;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles));
  return cycles;
}

}  // namespace quern::ptx
