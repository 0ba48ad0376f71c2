// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// cp.async: copies from global to shared memory that complete at a wait. When they do (at once, as late as allowed, at
// random) is the runtime's policy.
#pragma once
#include "quern/kit/emu/mbarrier.cuh"
#include "quern/kit/emu/memory.cuh"

namespace quern::ptx {

/// Copies `bytes` (4, 8, 16): the first source_bytes from `source`, the rest becomes zero.
template <int bytes>
QN_DEVICE void cp_async(u32 destination, const void* source, int source_bytes = bytes) {
  static_assert(bytes == 4 || bytes == 8 || bytes == 16);
  emu::current()->runtime->cp_async(destination, source, bytes, u32(source_bytes));
}
/// 16 bytes that bypass L1.
QN_DEVICE void cp_async_cg(u32 destination, const void* source, int source_bytes = 16) {
  emu::current()->runtime->cp_async(destination, source, 16, u32(source_bytes));
}
QN_DEVICE void cp_async_commit() { emu::current()->runtime->cp_async_commit(); }
/// Waits until at most `groups_left` of the thread's newest groups are pending.
template <int groups_left>
QN_DEVICE void cp_async_wait() {
  emu::current()->runtime->cp_async_wait(groups_left);
}
/// Waits for all, committed or not.
QN_DEVICE void cp_async_wait_all() {
  emu::current()->runtime->cp_async_commit();
  emu::current()->runtime->cp_async_wait(0);
}
/// Arrives when all copies that the thread has issued so far, committed or not, have come; of the thread's other writes
/// it tells nothing. One of the arrivals that the mbarrier was initialised with.
QN_DEVICE void cp_async_arrive(u32 mbarrier) { emu::mbarrier(emu::MbarrierOp::arrive_copies, mbarrier); }

}  // namespace quern::ptx
