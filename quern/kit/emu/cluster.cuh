// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Clusters of blocks. An address of the shared window has the rank of its block in bits 24 and up.
#pragma once
#include "quern/kit/emu/memory.cuh"

namespace quern::emu {

/// Pointer behind an address of any block of the cluster, which must not have exited.
QN_DEVICE u8* cluster_pointer(u32 address, u32 bytes, const char* what) {
  u8* pointer = shared_pointer(address, bytes, what);
  if (address >> 24 != current()->rank) current()->runtime->cluster_access(address >> 24, what);
  return pointer;
}
template <class T>
QN_DEVICE void store_async(u32 address, T value, u32 mbarrier) {
  BulkCall call{};
  call.op = BulkOp::store_async;
  call.shared = address;
  call.bytes = sizeof(T);
  call.mbarrier = mbarrier;
  __builtin_memcpy(call.words, &value, sizeof(T));
  current()->runtime->bulk(call);
}

}  // namespace quern::emu

namespace quern::ptx {

QN_DEVICE u32 cluster_rank() { return emu::current()->rank; }
QN_DEVICE u32 cluster_blocks() { return emu::current()->cluster_blocks; }

/// Every thread of the cluster arrives, then waits: what was done before the arrivals is visible after the wait.
QN_DEVICE void cluster_arrive(u32 line = __builtin_LINE()) { emu::current()->runtime->cluster_arrive(true, line); }
/// Makes nothing visible but what a fence before it covers, as fence_mbarrier_init does.
QN_DEVICE void cluster_arrive_relaxed(u32 line = __builtin_LINE()) { emu::current()->runtime->cluster_arrive(false, line); }
QN_DEVICE void cluster_wait(u32 line = __builtin_LINE()) { emu::current()->runtime->cluster_wait(line); }

/// The address in block `rank` of the cluster that `address` is in the own block.
QN_DEVICE u32 cluster_address(u32 address, u32 rank) { return (address & 0xffffffu) | rank << 24; }

/// Shared memory of any block of the cluster, T of 4, 8 or 16 bytes.
template <class T>
QN_DEVICE T ld_shared_cluster(u32 address) {
  return emu::load<T>(emu::cluster_pointer(address, sizeof(T), "ld.shared::cluster"));
}
QN_DEVICE void st_shared_cluster(u32 address, u32 v) { emu::store(emu::cluster_pointer(address, 4, "st.shared::cluster"), v); }
QN_DEVICE void st_shared_cluster(u32 address, u64 v) { emu::store(emu::cluster_pointer(address, 8, "st.shared::cluster"), v); }
QN_DEVICE void st_shared_cluster(u32 address, u32x2 v) { emu::store(emu::cluster_pointer(address, 8, "st.shared::cluster"), v); }
QN_DEVICE void st_shared_cluster(u32 address, u32x4 v) { emu::store(emu::cluster_pointer(address, 16, "st.shared::cluster"), v); }

/// The store completes later and then counts its bytes at the mbarrier, which lies in the same block as the address.
QN_DEVICE void st_async(u32 address, u32 v, u32 mbarrier) { emu::store_async(address, v, mbarrier); }
QN_DEVICE void st_async(u32 address, u64 v, u32 mbarrier) { emu::store_async(address, v, mbarrier); }
QN_DEVICE void st_async(u32 address, u32x2 v, u32 mbarrier) { emu::store_async(address, v, mbarrier); }
QN_DEVICE void st_async(u32 address, u32x4 v, u32 mbarrier) { emu::store_async(address, v, mbarrier); }

}  // namespace quern::ptx
