// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// 9.7.9.25.3 cp.async: copies from global to shared memory that complete at a wait.
#pragma once
#include "quern/kit/ptx/memory.cuh"

namespace quern::ptx {

/// Copies `bytes` (4, 8, 16): the first source_bytes from `source`, the rest becomes zero.
template <int bytes>
QN_DEVICE void cp_async(u32 destination, const void* source, int source_bytes = bytes) {
  static_assert(bytes == 4 || bytes == 8 || bytes == 16);
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(destination), "l"(source), "n"(bytes), "r"(source_bytes) : "memory");
}
/// 16 bytes that bypass L1.
QN_DEVICE void cp_async_cg(u32 destination, const void* source, int source_bytes = 16) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(destination), "l"(source), "r"(source_bytes) : "memory");
}
QN_DEVICE void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until at most `groups_left` of the thread's newest groups are pending.
template <int groups_left>
QN_DEVICE void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(groups_left) : "memory");
}
/// Waits for all, committed or not.
QN_DEVICE void cp_async_wait_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }
/// 9.7.13.15 cp.async.mbarrier.arrive: arrives when all copies that the thread has issued so far, committed or not,
/// have come; of the thread's other writes it tells nothing. One of the arrivals that the mbarrier was initialised with.
/// sm_90 and above, as mbarriers are here.
QN_DEVICE void cp_async_arrive(u32 mbarrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(mbarrier) : "memory");
}

}  // namespace quern::ptx
