// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Clusters of blocks: 9.7.13.3 barrier.cluster, 9.7.9.23 mapa, 10.13 %cluster_ctarank, ld and st with .shared::cluster
// (9.7.9.8, 9.7.9.11), 9.7.9.12 st.async. sm_90 and above.
#pragma once
#include "quern/kit/ptx/memory.cuh"

namespace quern::ptx {

QN_DEVICE u32 cluster_rank() {
  u32 rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
QN_DEVICE u32 cluster_blocks() {
  u32 blocks;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
  return blocks;
}

/// Every thread of the cluster arrives, then waits: what was done before the arrivals is visible after the wait.
QN_DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
/// Makes nothing visible but what a fence before it covers, as fence_mbarrier_init does.
QN_DEVICE void cluster_arrive_relaxed() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
QN_DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

/// The address in block `rank` of the cluster that `address` is in the own block.
QN_DEVICE u32 cluster_address(u32 address, u32 rank) {
  u32 out;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(out) : "r"(address), "r"(rank));
  return out;
}

QN_DEVICE void load_cluster(u32& v, u32 address) { asm volatile("ld.shared::cluster.b32 %0, [%1];" : "=r"(v) : "r"(address) : "memory"); }
QN_DEVICE void load_cluster(u64& v, u32 address) { asm volatile("ld.shared::cluster.b64 %0, [%1];" : "=l"(v) : "r"(address) : "memory"); }
QN_DEVICE void load_cluster(u32x2& v, u32 address) {
  asm volatile("ld.shared::cluster.v2.b32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(address) : "memory");
}
QN_DEVICE void load_cluster(u32x4& v, u32 address) {
  asm volatile("ld.shared::cluster.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(address) : "memory");
}
/// Shared memory of any block of the cluster, T of 4, 8 or 16 bytes.
template <class T>
QN_DEVICE T ld_shared_cluster(u32 address) {
  typename RawOf<sizeof(T)>::type raw;
  load_cluster(raw, address);
  return __builtin_bit_cast(T, raw);
}
QN_DEVICE void st_shared_cluster(u32 address, u32 v) { asm volatile("st.shared::cluster.b32 [%0], %1;" ::"r"(address), "r"(v) : "memory"); }
QN_DEVICE void st_shared_cluster(u32 address, u64 v) { asm volatile("st.shared::cluster.b64 [%0], %1;" ::"r"(address), "l"(v) : "memory"); }
QN_DEVICE void st_shared_cluster(u32 address, u32x2 v) {
  asm volatile("st.shared::cluster.v2.b32 [%0], {%1, %2};" ::"r"(address), "r"(v.x), "r"(v.y) : "memory");
}
QN_DEVICE void st_shared_cluster(u32 address, u32x4 v) {
  asm volatile("st.shared::cluster.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

/// The store completes later and then counts its bytes at the mbarrier, which lies in the same block as the address.
QN_DEVICE void st_async(u32 address, u32 v, u32 mbarrier) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(address), "r"(v), "r"(mbarrier)
               : "memory");
}
QN_DEVICE void st_async(u32 address, u64 v, u32 mbarrier) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(address), "l"(v), "r"(mbarrier)
               : "memory");
}
QN_DEVICE void st_async(u32 address, u32x2 v, u32 mbarrier) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];" ::"r"(address), "r"(v.x), "r"(v.y),
               "r"(mbarrier)
               : "memory");
}
QN_DEVICE void st_async(u32 address, u32x4 v, u32 mbarrier) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(address), "r"(v.x),
               "r"(v.y), "r"(v.z), "r"(v.w), "r"(mbarrier)
               : "memory");
}

}  // namespace quern::ptx
