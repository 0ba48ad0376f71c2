// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// 9.7.9.25.4 cp.async.bulk: copies of contiguous bytes by the copy engine, and the groups that stores are waited for
// by. Sizes and addresses are multiples of 16. sm_90 and above.
#pragma once
#include "quern/kit/ptx/number.cuh"

namespace quern::ptx {

/// From global memory to shared; counts its bytes at the mbarrier.
QN_DEVICE void bulk_load(u32 to, const void* from, u32 bytes, u32 mbarrier, CachePolicy policy = CachePolicy::evict_normal) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(to),
               "l"(from), "r"(bytes), "r"(mbarrier), "l"(u64(policy))
               : "memory");
}
/// To the same offset, and the mbarrier of the same offset, of each block of the cluster in the mask.
QN_DEVICE void bulk_load_multicast(u32 to, const void* from, u32 bytes, u32 mbarrier, u16 blocks,
                                   CachePolicy policy = CachePolicy::evict_normal) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%0], [%1], "
      "%2, "
      "[%3], %4, %5;" ::"r"(to),
      "l"(from), "r"(bytes), "r"(mbarrier), "h"(blocks), "l"(u64(policy))
      : "memory");
}
/// From the own shared memory to that of a block of the cluster, where the mbarrier lies too.
QN_DEVICE void bulk_copy_cluster(u32 to, u32 from, u32 bytes, u32 mbarrier) {
  asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "r"(from),
               "r"(bytes), "r"(mbarrier)
               : "memory");
}
/// From shared memory to global; belongs to the thread's open group.
QN_DEVICE void bulk_store(void* to, u32 from, u32 bytes, CachePolicy policy = CachePolicy::evict_normal) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%0], [%1], %2, %3;" ::"l"(to), "r"(from), "r"(bytes),
               "l"(u64(policy))
               : "memory");
}
/// Adds to what lies there, each element by itself; belongs to the thread's open group.
QN_DEVICE void bulk_reduce_add(f32* to, u32 from, u32 bytes) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
}
QN_DEVICE void bulk_reduce_add(bf16* to, u32 from, u32 bytes) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16 [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes)
               : "memory");
}
QN_DEVICE void bulk_reduce_add(f16* to, u32 from, u32 bytes) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes)
               : "memory");
}
QN_DEVICE void bulk_prefetch(const void* from, u32 bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
}

/// Closes the thread's group of stores.
QN_DEVICE void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/// Waits until at most `groups_left` of the thread's newest groups are not complete: their results are visible to it.
template <int groups_left>
QN_DEVICE void bulk_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(groups_left) : "memory");
}
/// The same, but only until their sources have been read and may be overwritten.
template <int groups_left>
QN_DEVICE void bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(groups_left) : "memory");
}

}  // namespace quern::ptx
