// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/conform/params.h"
#include "quern/kit/world.cuh"

namespace quern::conform {

/// Clusters of four blocks of 32 threads. Block r sends to block (r + 1) % 4. in: u32 [128]. out u32 [blocks, 8, 32]:
/// rank and blocks of the cluster; what was read of the next block by each size; what arrived from the block before by
/// stores, by asynchronous stores and by a copy; what a remote arrival announced.
QN_DEVICE void cluster_all(const Params& p) {
  QN_SMEM(smem);
  const u32 t = threadIdx.x, base = ptx::smem_address(smem), rank = ptx::cluster_rank(), blocks = ptx::cluster_blocks();
  const u32 next = (rank + 1) % blocks, bytes_come = base + 2048, announced = base + 2056;
  u32* slots = reinterpret_cast<u32*>(smem);
  u32* out = static_cast<u32*>(p.out) + blockIdx.x * 8 * 32 + t;
  if (t == 0) {
    ptx::mbarrier_init(bytes_come, 1);
    ptx::mbarrier_init(announced, 64);
    ptx::fence_mbarrier_init();
    ptx::mbarrier_arrive_expect_tx(bytes_come, 32 * (4 + 8 + 8 + 16) + 512);
  }
  for (u32 i = 0; i < 4; ++i) slots[32 * i + t] = 1000 * rank + static_cast<const u32*>(p.in)[32 * i + t];
  ptx::fence_proxy_async();
  ptx::cluster_arrive();
  ptx::cluster_wait();

  out[0] = rank * 100 + blocks;
  const u32 there = ptx::cluster_address(base, next);
  u32 sum = ptx::ld_shared_cluster<u32>(there + 4 * t);
  const u32x2 two = ptx::ld_shared_cluster<u32x2>(there + 8 * t);
  const u32x4 four = ptx::ld_shared_cluster<u32x4>(there + 16 * t);
  const u64 wide = ptx::ld_shared_cluster<u64>(there + 8 * (31 - t));
  out[32] = sum;
  out[64] = two.x + 3 * two.y + 5 * u32(wide) + 7 * u32(wide >> 32);
  out[96] = four.x + 3 * four.y + 5 * four.z + 7 * four.w;

  // Ordinary stores of each size, then the announcement.
  ptx::st_shared_cluster(there + 512 + 4 * t, 7 * t + rank);
  ptx::st_shared_cluster(there + 640 + 8 * t, u32x2{t, rank});
  ptx::st_shared_cluster(there + 4096 + 8 * t, u64(t) << 32 | rank);
  ptx::st_shared_cluster(there + 4352 + 16 * t, u32x4{t, rank, t + rank, t * rank});
  ptx::mbarrier_arrive_cluster(ptx::cluster_address(announced, next), 2);

  const u32 come_there = ptx::cluster_address(bytes_come, next);
  ptx::st_async(there + 1024 + 4 * t, 9 * t + rank, come_there);
  ptx::st_async(there + 1152 + 8 * t, u64(rank) << 32 | t, come_there);
  ptx::st_async(there + 4864 + 8 * t, u32x2{t + 1, rank}, come_there);
  ptx::st_async(there + 5120 + 16 * t, u32x4{t, 2 * t, 3 * t, rank}, come_there);
  if (t == 0) ptx::bulk_copy_cluster(there + 1408, base, 512, come_there);

  ptx::mbarrier_wait_cluster(announced, 0);
  const u32* from = reinterpret_cast<const u32*>(smem + 512);
  out[128] = from[31 - t] + 3 * from[32 + 2 * t] + 5 * from[33 + 2 * t];
  const u32* wider = reinterpret_cast<const u32*>(smem + 4096);
  out[160] = wider[2 * t] + 3 * wider[2 * t + 1] + 5 * wider[64 + 4 * t + 2] + 7 * wider[64 + 4 * t + 3];
  ptx::mbarrier_wait(bytes_come, 0);
  const u32* sent = reinterpret_cast<const u32*>(smem + 1024);
  const u32* wide_sent = reinterpret_cast<const u32*>(smem + 4864);
  out[192] = sent[31 - t] + 3 * sent[32 + 2 * t] + 5 * sent[33 + 2 * t] + 7 * wide_sent[2 * t] + 11 * wide_sent[64 + 4 * t + 2];
  out[224] = sent[96 + t] + 3 * sent[96 + 127 - t];

  // A second use of the barrier by arrivals with bytes, of which none come by then: a copy brings them.
  ptx::cluster_arrive();
  ptx::cluster_wait();
  // Arrivals that announce nothing written: the next phase of the other barrier.
  ptx::mbarrier_arrive_remote(ptx::cluster_address(announced, next));
  ptx::mbarrier_arrive_remote(ptx::cluster_address(announced, next));
  ptx::mbarrier_wait(announced, 1);
  if (t == 0) {
    ptx::mbarrier_arrive_expect_tx_cluster(come_there, 16);
    ptx::fence_cluster();
    ptx::st_async(there + 1024, u32x4{rank, rank, rank, rank}, come_there);
  }
  while (!ptx::mbarrier_try_wait_cluster(bytes_come, 1)) {}
  out[0] += 10000 * sent[t % 4];
  ptx::cluster_arrive();
  ptx::cluster_wait();
}

}  // namespace quern::conform
