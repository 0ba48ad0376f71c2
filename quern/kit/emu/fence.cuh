// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Fences between proxies. They move no data here; checked mode reports an asynchronous access to what no fence covers.
#pragma once
#include "quern/kit/emu/entry.cuh"

namespace quern::ptx {

/// Ordinary accesses before it, of any state space, are ordered with asynchronous ones after it.
QN_DEVICE void fence_proxy_async() { emu::current()->runtime->proxy_fence(emu::ProxyFence::async, nullptr); }
/// The same of the block's shared memory only.
QN_DEVICE void fence_proxy_async_shared() { emu::current()->runtime->proxy_fence(emu::ProxyFence::async_shared, nullptr); }
/// The same of global memory only.
QN_DEVICE void fence_proxy_async_global() { emu::current()->runtime->proxy_fence(emu::ProxyFence::async_global, nullptr); }

/// The thread's mbarrier_init become visible to the cluster and to bulk copies.
QN_DEVICE void fence_mbarrier_init() { emu::current()->runtime->proxy_fence(emu::ProxyFence::mbarrier_init, nullptr); }

/// By the writer of a tensor map in global memory, behind the write.
QN_DEVICE void fence_proxy_tensormap_release() { emu::current()->runtime->proxy_fence(emu::ProxyFence::tensormap_release, nullptr); }
/// By its user, before the first copy with it. The map lies in global memory.
QN_DEVICE void fence_proxy_tensormap_acquire(const TensorMap* map) {
  emu::current()->runtime->proxy_fence(emu::ProxyFence::tensormap_acquire, map);
}

QN_DEVICE void fence_cluster() { emu::current()->runtime->fence(emu::Scope::cluster); }

}  // namespace quern::ptx
