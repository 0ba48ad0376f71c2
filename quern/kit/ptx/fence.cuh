// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// 9.7.13.4 fence between proxies: what ordinary accesses wrote becomes visible to bulk copies, wgmma and tensor maps.
// sm_90 and above.
#pragma once
#include "quern/kit/ptx/entry.cuh"

namespace quern::ptx {

/// Ordinary accesses before it, of any state space, are ordered with asynchronous ones after it.
QN_DEVICE void fence_proxy_async() { asm volatile("fence.proxy.async;" ::: "memory"); }
/// The same of the block's shared memory only.
QN_DEVICE void fence_proxy_async_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
/// The same of global memory only.
QN_DEVICE void fence_proxy_async_global() { asm volatile("fence.proxy.async.global;" ::: "memory"); }

/// The thread's mbarrier_init become visible to the cluster and to bulk copies.
QN_DEVICE void fence_mbarrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

/// By the writer of a tensor map in global memory, behind the write.
QN_DEVICE void fence_proxy_tensormap_release() { asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory"); }
/// By its user, before the first copy with it. The map lies in global memory.
QN_DEVICE void fence_proxy_tensormap_acquire(const TensorMap* map) {
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}

QN_DEVICE void fence_cluster() { asm volatile("fence.acq_rel.cluster;" ::: "memory"); }

}  // namespace quern::ptx
