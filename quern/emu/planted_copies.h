// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Like planted_kernels.h: kernels with mbarriers, bulk and tensor copies, clusters, dependent launches.
#pragma once
#include "quern/emu/planted_kernels.h"

namespace quern::emu::planted {

// rows: in as a tensor [blocks, 64], boxes of 32 elements of a row; results: scratch as a tensor [2, 32], boxes of a
// row. scratch begins at a multiple of 256
inline const std::vector<Sample>& copy_samples() {
  static const std::vector<Sample> all = {
      {"tma_ring",
       64,
       2,
       1024,
       R"(
  QN_SMEM(smem);
  const u32 t = threadIdx.x, base = ptx::smem_address(smem), tiles = 6, full = base + 512, empty = base + 528;
  if (t == 0) {
    for (u32 s = 0; s < 2; ++s) {
      ptx::mbarrier_init(full + 8 * s, 1);
      ptx::mbarrier_init(empty + 8 * s, 32);
    }
    ptx::fence_mbarrier_init();
  }
  ptx::sync_block();
  f32 sum = 0;
  if (t < 32) {
    for (u32 tile = 0; t == 0 && tile < tiles; ++tile) {
      const u32 s = tile % 2, round = tile / 2;
      ptx::mbarrier_wait(empty + 8 * s, (round & 1) ^ 1);
      ptx::mbarrier_arrive_expect_tx(full + 8 * s, 128);
      ptx::tma_load(base + 128 * s, &p.rows, full + 8 * s, CachePolicy::evict_normal, 32 * s, blockIdx.x);
    }
  } else {
    for (u32 tile = 0; tile < tiles; ++tile) {
      const u32 s = tile % 2, round = tile / 2;
      ptx::mbarrier_wait(full + 8 * s, round & 1);
      sum += ptx::ld_shared<f32>(smem + 128 * s + 4 * (63 - t));
      ptx::mbarrier_arrive(empty + 8 * s);
    }
  }
  if (t == 32) p.out[blockIdx.x] = sum;
)",
       {{"consumer does not wait for the copy", "      ptx::mbarrier_wait(full + 8 * s, round & 1);\n", "", {"RACE", "UNINIT"}},
        {"consumer waits for the wrong parity", "full + 8 * s, round & 1", "full + 8 * s, (round & 1) ^ 1", {"RACE", "UNINIT"}},
        {"consumer waits for the other stage",
         "ptx::mbarrier_wait(full + 8 * s, r",
         "ptx::mbarrier_wait(full + 8 * (s ^ 1), r",
         {"RACE", "UNINIT"}},
        {"consumer does not arrive", "      ptx::mbarrier_arrive(empty + 8 * s);\n", "", {"DEADLOCK"}},
        {"stage released before it is read",
         "      sum += ptx::ld_shared<f32>(smem + 128 * s + 4 * (63 - t));\n      ptx::mbarrier_arrive(empty + 8 * s);",
         "      ptx::mbarrier_arrive(empty + 8 * s);\n      sum += ptx::ld_shared<f32>(smem + 128 * s + 4 * (63 - t));",
         {"RACE"}},
        {"producer does not wait for a free stage",
         "      ptx::mbarrier_wait(empty + 8 * s, (round & 1) ^ 1);\n",
         "",
         {"RACE", "MBARRIER"}},
        {"producer waits for the wrong parity", "(round & 1) ^ 1", "round & 1", {"DEADLOCK"}},
        {"too few bytes expected", "full + 8 * s, 128)", "full + 8 * s, 64)", {"DEADLOCK", "RACE"}},
        {"a box loaded 8 bytes into a row", "evict_normal, 32 * s, blockIdx.x", "evict_normal, 32 * s + 2, blockIdx.x", {"MISALIGNED"}},
        {"too many bytes expected", "full + 8 * s, 128)", "full + 8 * s, 256)", {"DEADLOCK"}},
        {"no bytes expected", "arrive_expect_tx(full + 8 * s, 128)", "arrive(full + 8 * s)", {"RACE", "UNINIT", "DEADLOCK"}},
        {"one arrival too many asked for", "empty + 8 * s, 32)", "empty + 8 * s, 33)", {"DEADLOCK"}},
        {"one arrival too few asked for", "empty + 8 * s, 32)", "empty + 8 * s, 31)", {"RACE", "DEADLOCK", "MBARRIER"}},
        {"no fence_mbarrier_init", "    ptx::fence_mbarrier_init();\n", "", {"PROXY"}},
        {"no barrier behind the initialisation", "  ptx::sync_block();\n", "", {"RACE", "MBARRIER"}},
        {"the copy counts at the other stage's mbarrier",
         "&p.rows, full + 8 * s",
         "&p.rows, full + 8 * (s ^ 1)",
         {"DEADLOCK", "RACE", "UNINIT"}},
        {"a stage lies on the mbarriers", "base + 128 * s", "base + 512 * s", {"MBARRIER"}},
        {"a stage is misaligned", "base + 128 * s", "base + 144 * s", {"MISALIGNED"}},
        {"a stage past shared memory", "base + 128 * s", "base + 1024 * s", {"SMEM-OOB"}},
        {"an mbarrier overwritten", "  f32 sum = 0;", "  if (t == 63) ptx::st_shared(smem + 520, 1u);\n  f32 sum = 0;", {"MBARRIER"}},
        {"initialised twice",
         "    ptx::fence_mbarrier_init();",
         "    ptx::mbarrier_init(full, 1);\n    ptx::fence_mbarrier_init();",
         {"MBARRIER"}},
        {"coordinates of one dimension", "32 * s, blockIdx.x)", "32 * s)", {"ASYNC"}},
        {"no tensor map", "&p.rows, full", "reinterpret_cast<const TensorMap*>(p.flags), full", {"ASYNC", "MISALIGNED"}},
        {"the last copies not waited for", "t == 0 && tile < tiles", "t == 0 && tile < tiles + 2", {"ASYNC"}}}},
      {"tma_store",
       64,
       1,
       512,
       R"(
  QN_SMEM(smem);
  f32* tile = reinterpret_cast<f32*>(smem);
  const u32 t = threadIdx.x, base = ptx::smem_address(smem);
  for (u32 row = 0; row < 2; ++row) {
    if (t < 32) tile[t] = f32(t);
    ptx::fence_proxy_async_shared();
    ptx::sync_block();
    if (t == 0) {
      ptx::tma_store(&p.results, base, CachePolicy::evict_first, 0, row);
      ptx::bulk_commit();
      ptx::bulk_wait_read<0>();
    }
    ptx::sync_block();
  }
  if (t == 0) ptx::bulk_wait<0>();
  ptx::sync_block();
  const f32 v = p.scratch[t];
  if (t == 33) p.out[blockIdx.x] = v;
)",
       {{"no fence.proxy.async before the store", "    ptx::fence_proxy_async_shared();\n", "", {"PROXY"}},
        {"a fence of global memory only", "ptx::fence_proxy_async_shared();", "ptx::fence_proxy_async_global();", {"PROXY"}},
        {"only one writer fences", "    ptx::fence_proxy_async_shared();", "    if (t == 0) ptx::fence_proxy_async_shared();", {"PROXY"}},
        {"the fence before the writes",
         "    if (t < 32) tile[t] = f32(t);\n    ptx::fence_proxy_async_shared();",
         "    ptx::fence_proxy_async_shared();\n    if (t < 32) tile[t] = f32(t);",
         {"PROXY"}},
        {"no barrier before the store", "shared();\n    ptx::sync_block();", "shared();", {"RACE", "UNINIT"}},
        {"staging overwritten under the store", "      ptx::bulk_wait_read<0>();\n", "", {"RACE"}},
        {"the wait leaves the store pending", "ptx::bulk_wait_read<0>()", "ptx::bulk_wait_read<1>()", {"RACE"}},
        {"the store not committed", "      ptx::bulk_commit();\n", "", {"RACE"}},
        {"no barrier behind the wait",
         "      ptx::bulk_wait_read<0>();\n    }\n    ptx::sync_block();",
         "      ptx::bulk_wait_read<0>();\n    }",
         {"RACE"}},
        {"another thread waits", "  if (t == 0) ptx::bulk_wait<0>();", "  if (t == 1) ptx::bulk_wait<0>();", {"RACE"}},
        {"results read when only the sources were",
         "  if (t == 0) ptx::bulk_wait<0>();",
         "  if (t == 0) ptx::bulk_wait_read<0>();",
         {"RACE"}},
        {"half of the tile not written", "if (t < 32) tile", "if (t < 16) tile", {"UNINIT"}},
        {"a box stored 4 bytes into a row", "evict_first, 0, row)", "evict_first, 1, row)", {"MISALIGNED"}},
        {"a box stored from below the first row", "evict_first, 0, row)", "evict_first, 0, i32(row) - 1)", {"ASYNC"}},
        {"both rows stored to one", "evict_first, 0, row", "evict_first, 0, 0", {"RACE", "UNINIT"}}}},
      {"bulk_sum",
       32,
       3,
       128,
       R"(
  QN_SMEM(smem);
  f32* tile = reinterpret_cast<f32*>(smem);
  const u32 t = threadIdx.x, base = ptx::smem_address(smem);
  tile[t] = p.in[80 * blockIdx.x + t];
  ptx::fence_proxy_async();
  ptx::sync_warp();
  if (t == 0) {
    ptx::bulk_reduce_add(reinterpret_cast<f32*>(p.flags), base, 128);
    ptx::bulk_commit();
    ptx::bulk_wait_read<0>();
    p.out[blockIdx.x] = tile[5];
  }
)",
       {{"no wait before the exit", "    ptx::bulk_wait_read<0>();\n", "", {"ASYNC"}},
        {"no fence", "  ptx::fence_proxy_async();\n", "", {"PROXY"}},
        {"no sync_warp", "  ptx::sync_warp();\n", "", {"RACE", "UNINIT"}},
        {"a size that is no multiple of 16", "base, 128)", "base, 120)", {"MISALIGNED"}},
        {"stores in place of sums", "ptx::bulk_reduce_add(reinterpret_cast<f32*>(p.flags)", "ptx::bulk_store(p.flags", {"RACE"}},
        {"sums on what was never written", "reinterpret_cast<f32*>(p.flags)", "p.scratch", {"UNINIT"}},
        {"past the end of the output", "p.flags)", "p.flags) + 40", {"GLOBAL-OOB"}},
        {"an input as the destination", "reinterpret_cast<f32*>(p.flags)", "const_cast<f32*>(p.in)", {"WRITE-TO-INPUT"}}}},
      {"cluster_exchange",
       32,
       2,
       512,
       R"(
  QN_SMEM(smem);
  const u32 t = threadIdx.x, base = ptx::smem_address(smem), announced = base + 384;
  const u32 rank = ptx::cluster_rank(), other = rank ^ 1;
  ptx::st_shared(smem + 4 * t, rank + t);
  if (t == 0) {
    ptx::mbarrier_init(announced, 32);
    ptx::fence_mbarrier_init();
  }
  ptx::cluster_arrive();
  ptx::cluster_wait();
  u32 v = ptx::ld_shared_cluster<u32>(ptx::cluster_address(base + 4 * (31 - t), other));
  ptx::st_shared_cluster(ptx::cluster_address(base + 128 + 4 * t, other), v);
  ptx::mbarrier_arrive_cluster(ptx::cluster_address(announced, other));
  ptx::mbarrier_wait_cluster(announced, 0);
  v += ptx::ld_shared<u32>(smem + 128 + 4 * (31 - t));
  v += ptx::ld_shared_cluster<u32>(ptx::cluster_address(base + 4 * t, other));
  ptx::cluster_arrive();
  ptx::cluster_wait();
  if (t == 0) p.out[blockIdx.x] = f32(v);
)",
       {{"no cluster barrier at the begin",
         "  }\n  ptx::cluster_arrive();\n  ptx::cluster_wait();",
         "  }\n  ptx::sync_block();",
         {"RACE", "UNINIT", "MBARRIER"}},
        {"a relaxed arrival", "ptx::cluster_arrive();", "ptx::cluster_arrive_relaxed();", {"RACE"}},
        {"no wait at the cluster barrier", "  ptx::cluster_wait();\n  u32 v", "  u32 v", {"RACE", "UNINIT", "MBARRIER", "BARRIER"}},
        {"no cluster barrier at the end",
         "other));\n  ptx::cluster_arrive();\n  ptx::cluster_wait();\n  if",
         "other));\n  if",
         {"CLUSTER"}},
        {"remote arrival at the wrong rank", "cluster_address(announced, other)", "cluster_address(announced, rank)", {"RACE", "UNINIT"}},
        {"no remote arrival", "  ptx::mbarrier_arrive_cluster(ptx::cluster_address(announced, other));\n", "", {"DEADLOCK"}},
        {"no wait for the remote arrival", "  ptx::mbarrier_wait_cluster(announced, 0);\n", "", {"RACE", "UNINIT"}},
        {"the arrival before the data",
         "  ptx::st_shared_cluster(ptx::cluster_address(base + 128 + 4 * t, other), v);\n  "
         "ptx::mbarrier_arrive_cluster(ptx::cluster_address(announced, other));",
         "  ptx::mbarrier_arrive_cluster(ptx::cluster_address(announced, other));\n  "
         "ptx::st_shared_cluster(ptx::cluster_address(base + 128 + 4 * t, other), v);",
         {"RACE", "UNINIT"}},
        {"a rank that the cluster has not", "other = rank ^ 1", "other = rank + 1", {"SMEM-OOB"}}},
       2},
      {"multicast_ring",
       64,
       2,
       1024,
       R"(
  QN_SMEM(smem);
  const u32 t = threadIdx.x, base = ptx::smem_address(smem), rank = ptx::cluster_rank(), full = base + 512, empty = base + 520;
  if (t == 0) {
    ptx::mbarrier_init(full, 1);
    ptx::mbarrier_init(empty, 64);
    ptx::fence_mbarrier_init();
  }
  ptx::cluster_arrive_relaxed();
  ptx::cluster_wait();
  f32 sum = 0;
  for (u32 round = 0; round < 4; ++round) {
    if (t == 0) {
      ptx::mbarrier_wait_cluster(empty, (round & 1) ^ 1);
      ptx::mbarrier_arrive_expect_tx(full, 256);
      ptx::tma_load_multicast(base + 128 * rank, &p.rows, full, 3, CachePolicy::evict_last, 32 * (round & 1), rank);
    } else if (t >= 32) {
      ptx::mbarrier_wait(full, round & 1);
      sum += ptx::ld_shared<f32>(smem + 4 * (63 - t)) + ptx::ld_shared<f32>(smem + 128 + 4 * (t - 32));
      for (u32 block = 0; block < 2; ++block) ptx::mbarrier_arrive_cluster(ptx::cluster_address(empty, block));
    }
  }
  ptx::sync_warp();
  ptx::cluster_arrive();
  ptx::cluster_wait();
  if (t == 32) p.out[blockIdx.x] = sum;
)",
       {{"a stage refilled while the other block reads it",
         "ptx::cluster_address(empty, block)",
         "ptx::cluster_address(empty, rank)",
         {"RACE"}},
        {"no fence_mbarrier_init", "    ptx::fence_mbarrier_init();\n", "", {"RACE", "PROXY"}},
        {"a barrier of the block in place of the cluster's",
         "  ptx::cluster_arrive_relaxed();\n  ptx::cluster_wait();",
         "  ptx::sync_block();",
         {"RACE", "MBARRIER", "PROXY"}},
        {"no cluster barrier at the end", "  ptx::cluster_arrive();\n  ptx::cluster_wait();\n", "", {"CLUSTER", "ASYNC"}},
        {"bytes of the own half only", "full, 256)", "full, 128)", {"RACE", "UNINIT", "DEADLOCK"}},
        {"a multicast to the own block only", "&p.rows, full, 3,", "&p.rows, full, u16(1u << rank),", {"DEADLOCK"}},
        {"a multicast to a block that is not there", "&p.rows, full, 3,", "&p.rows, full, 7,", {"ASYNC"}}},
       2},
      {"tensormap_rebuilt",
       32,
       1,
       512,
       R"(
  QN_SMEM(smem);
  const u32 t = threadIdx.x, base = ptx::smem_address(smem), box = base + 128, barrier = base + 256;
  TensorMap* map = reinterpret_cast<TensorMap*>(p.scratch);
  if (t == 0) {
    ptx::mbarrier_init(barrier, 1);
    ptx::fence_mbarrier_init();
  }
  ptx::st_shared(smem + 4 * t, reinterpret_cast<const u32*>(&p.rows)[t]);
  ptx::sync_warp();
  f32 sum = 0;
  for (u32 round = 0; round < 2; ++round) {
    if (t == 1) ptx::tensormap_replace_address(base, p.in + 16 * round);
    ptx::sync_warp();
    ptx::tensormap_publish(map, base);
    ptx::sync_warp();
    if (t == 2) {
      ptx::fence_proxy_tensormap_acquire(map);
      ptx::mbarrier_arrive_expect_tx(barrier, 128);
      ptx::tma_load(box, map, barrier, CachePolicy::evict_normal, 0, 0);
    }
    ptx::mbarrier_wait(barrier, round);
    sum += ptx::ld_shared<f32>(smem + 128 + 4 * t);
    ptx::sync_warp();
  }
  if (t == 0) p.out[0] = sum;
)",
       {{"the map replaced while a copy reads it",
         "    ptx::mbarrier_wait(barrier, round);",
         "    ptx::tensormap_publish(map, base);\n    ptx::mbarrier_wait(barrier, round);",
         {"RACE"}},
        {"no acquire by its user", "      ptx::fence_proxy_tensormap_acquire(map);\n", "", {"PROXY"}},
        {"a plain copy in place of the release",
         "ptx::tensormap_publish(map, base);",
         "ptx::st_global(reinterpret_cast<u32*>(map) + t, ptx::ld_shared<u32>(smem + 4 * t));",
         {"PROXY"}},
        {"no sync_warp before it is published", "16 * round);\n    ptx::sync_warp();", "16 * round);", {"RACE"}},
        {"no sync_warp before it is used", "base);\n    ptx::sync_warp();", "base);", {"RACE"}},
        {"the other map's place used", "ptx::tma_load(box, map,", "ptx::tma_load(box, map + 1,", {"ASYNC", "UNINIT"}},
        {"the box not waited for", "    ptx::mbarrier_wait(barrier, round);\n", "", {"RACE", "UNINIT"}}}},
      {"dependent_launches",
       32,
       1,
       0,
       R"(
  const u32 t = threadIdx.x;
  ptx::grid_launch_dependents();
  const f32 weight = p.in[t];
  ptx::grid_dependency_wait();
  const u32 before = p.flags[t];
  p.flags[t] = before + 1;
  if (t == 0) p.out[0] = weight;
)",
       {{"no griddepcontrol.wait", "  ptx::grid_dependency_wait();\n", "", {"RACE"}},
        {"results of the launch before read ahead of the wait",
         "  ptx::grid_dependency_wait();\n  const u32 before = p.flags[t];",
         "  const u32 before = p.flags[t];\n  ptx::grid_dependency_wait();",
         {"RACE"}},
        {"an output written ahead of the wait",
         "  ptx::grid_dependency_wait();",
         "  if (t == 0) p.out[0] = 0;\n  ptx::grid_dependency_wait();",
         {"RACE"}},
        {"one thread waits, the others do not", "  ptx::grid_dependency_wait();", "  if (t == 0) ptx::grid_dependency_wait();", {"RACE"}}},
       1,
       3},
      {"one_waits_for_all",
       64,
       2,
       0,
       R"(
  const u32 t = threadIdx.x;
  if (t == 5) ptx::grid_dependency_wait();
  ptx::sync_block();
  const u32 mine = 32 * blockIdx.x + t / 2;
  if (t % 2 == 0) p.flags[mine] = p.flags[mine] + 1;
  ptx::grid_launch_dependents();
  if (t == 0) p.out[blockIdx.x] = 1;
)",
       {{"no barrier behind the wait", "  ptx::sync_block();\n", "", {"RACE"}},
        {"one block does not wait", "if (t == 5)", "if (t == 5 && blockIdx.x == 0)", {"RACE"}}},
       1,
       3},
      {"announced_copies",
       64,
       2,
       1024,
       R"(
  QN_SMEM(smem);
  const u32 t = threadIdx.x, base = ptx::smem_address(smem), tiles = 6, full = base + 512, empty = base + 528;
  const f32* row = p.in + 80 * blockIdx.x;
  if (t == 0) {
    for (u32 s = 0; s < 2; ++s) {
      ptx::mbarrier_init(full + 8 * s, 32);
      ptx::mbarrier_init(empty + 8 * s, 32);
    }
  }
  ptx::sync_block();
  f32 sum = 0;
  if (t < 32) {
    for (u32 tile = 0; tile < tiles; ++tile) {
      const u32 s = tile % 2, round = tile / 2, to = base + 256 * s;
      ptx::mbarrier_wait(empty + 8 * s, (round & 1) ^ 1);
      ptx::cp_async<4>(to + 4 * t, row + t);
      ptx::cp_async<4>(to + 4 * (32 + t), row + 32 + t);
      ptx::cp_async_arrive(full + 8 * s);
    }
    ptx::cp_async_wait_all();
  } else {
    for (u32 tile = 0; tile < tiles; ++tile) {
      const u32 s = tile % 2, round = tile / 2;
      ptx::mbarrier_wait(full + 8 * s, round & 1);
      sum += ptx::ld_shared<f32>(smem + 256 * s + 4 * (63 - t)) + ptx::ld_shared<f32>(smem + 256 * s + 4 * t);
      ptx::mbarrier_arrive(empty + 8 * s);
    }
  }
  if (t == 32) p.out[blockIdx.x] = sum;
)",
       {{"reader does not wait for the copies", "      ptx::mbarrier_wait(full + 8 * s, round & 1);\n", "", {"RACE", "UNINIT"}},
        {"reader waits for the wrong parity", "full + 8 * s, round & 1", "full + 8 * s, (round & 1) ^ 1", {"RACE", "UNINIT"}},
        {"announced before the last copy",
         "      ptx::cp_async<4>(to + 4 * (32 + t), row + 32 + t);\n      ptx::cp_async_arrive(full + 8 * s);",
         "      ptx::cp_async_arrive(full + 8 * s);\n      ptx::cp_async<4>(to + 4 * (32 + t), row + 32 + t);",
         {"RACE", "UNINIT"}},
        {"an ordinary arrival in place of the copies'", "ptx::cp_async_arrive(full", "ptx::mbarrier_arrive(full", {"RACE"}},
        {"an ordinary store, which the copies do not announce",
         "ptx::cp_async<4>(to + 4 * (32 + t), row + 32 + t);",
         "ptx::st_shared(smem + 256 * s + 4 * (32 + t), row[32 + t]);",
         {"RACE"}},
        {"copies not announced", "      ptx::cp_async_arrive(full + 8 * s);\n", "", {"DEADLOCK"}},
        {"announced by one lane for its warp",
         "ptx::cp_async_arrive(full + 8 * s)",
         "if (t == 0) ptx::cp_async_arrive(full + 8 * s)",
         {"DEADLOCK"}},
        {"a phase that takes the arrival of one lane", "full + 8 * s, 32)", "full + 8 * s, 1)", {"RACE", "UNINIT", "DEADLOCK"}},
        {"one arrival too many asked for", "full + 8 * s, 32)", "full + 8 * s, 33)", {"DEADLOCK"}},
        {"one arrival too few asked for", "full + 8 * s, 32)", "full + 8 * s, 31)", {"RACE", "UNINIT", "DEADLOCK"}},
        {"more arrivals than a phase takes that waits for bytes",
         "ptx::cp_async_arrive(full + 8 * s)",
         "ptx::mbarrier_expect_tx(full + 8 * s, 16);\n      for (u32 i = 0; i < 2; ++i) ptx::cp_async_arrive(full + 8 * s)",
         {"MBARRIER"}},
        {"copies that arrive where no mbarrier is", "ptx::cp_async_arrive(full + 8 * s)", "ptx::cp_async_arrive(full + 64)", {"MBARRIER"}},
        {"copies that arrive between two mbarriers",
         "ptx::cp_async_arrive(full + 8 * s)",
         "ptx::cp_async_arrive(full + 4)",
         {"MISALIGNED"}},
        {"copies that arrive past shared memory", "ptx::cp_async_arrive(full + 8 * s)", "ptx::cp_async_arrive(base + 1024)", {"SMEM-OOB"}},
        {"an mbarrier invalidated before the copies have come",
         "      ptx::cp_async_arrive(full + 8 * s);",
         "      ptx::cp_async_arrive(full + 8 * s);\n      ptx::sync_warp();\n      if (t == 31 && tile == 1) ptx::mbarrier_inval(full + 8);",
         {"MBARRIER", "RACE"}},
        {"copies over a stage that is read", "      ptx::mbarrier_wait(empty + 8 * s, (round & 1) ^ 1);\n", "", {"RACE"}},
        {"reader does not arrive", "      ptx::mbarrier_arrive(empty + 8 * s);\n", "", {"DEADLOCK"}}}},
  };
  return all;
}

}  // namespace quern::emu::planted
