// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Warpgroups: four warps that multiply matrices together (wgmma), and what they need beside it. For sm_90a; a kernel
// includes this beside kit.cuh.
#pragma once
#include "quern/kit/matrix_descriptor.cuh"
#include "quern/kit/world.cuh"
#if defined(QN_EMU)
#include "quern/kit/emu/wgmma.cuh"
#else
#include "quern/kit/ptx/wgmma.cuh"
#endif

namespace quern {

constexpr int kWarpgroupSize = 128;

/// Of the calling thread: its warpgroup in the block, itself and its warp in the warpgroup. A branch on the first is uniform
/// for the compiler when the value comes through ptx::shfl(.., 0).
QN_DEVICE u32 warpgroup_id() { return threadIdx.x / kWarpgroupSize; }
QN_DEVICE u32 thread_of_warpgroup() { return threadIdx.x % kWarpgroupSize; }
QN_DEVICE u32 warp_of_warpgroup() { return ptx::warp_id() % 4; }

/// Named barrier of a warpgroup: 1 to 8. Barrier 0 is ptx::sync_block; 9 to 15 are free for other uses.
QN_DEVICE int warpgroup_barrier(u32 warpgroup) { return 1 + int(warpgroup); }
/// The threads of the warpgroup meet.
QN_DEVICE void sync_warpgroup() { ptx::bar_sync(warpgroup_barrier(warpgroup_id()), kWarpgroupSize); }

}  // namespace quern
