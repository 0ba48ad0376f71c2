// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Correct kernels and what breaks them, as in planted_kernels.h: faults that one order of events hides, mostly the usual one.
#pragma once
#include "quern/emu/planted_kernels.h"

namespace quern::emu::planted {

inline const std::vector<Sample>& luck_samples() {
  static const std::vector<Sample> all = {
      // The last block reads what the others have written. A GPU may start it first.
      {"flags_of_others",
       32,
       3,
       0,
       R"(
  const u32 t = threadIdx.x, b = blockIdx.x;
  if (b < 2) {
    p.scratch[32 * b + t] = p.in[80 * b + t];
    ptx::sync_warp();
    if (t == 0) ptx::st_release_gpu(p.flags + b, 1u);
  } else {
    if (t == 0) {
      while (ptx::ld_acquire_gpu(p.flags) == 0) {}
      while (ptx::ld_acquire_gpu(p.flags + 1) == 0) {}
    }
    ptx::sync_warp();
    if (t < 3) p.out[t] = p.scratch[t] + p.scratch[32 + t];
  }
)",
       {{"one of two flags is not waited for",
         "      while (ptx::ld_acquire_gpu(p.flags + 1) == 0) {}\n",
         "",
         {"RACE", "UNINIT"},
         HiddenBy::first_first},
        {"a flag is looked at once",
         "while (ptx::ld_acquire_gpu(p.flags) == 0) {}",
         "ptx::ld_acquire_gpu(p.flags);",
         {"RACE", "UNINIT"},
         HiddenBy::first_first},
        {"an ordinary loop",
         "while (ptx::ld_acquire_gpu(p.flags) == 0) {}",
         "while (*(volatile u32*)p.flags == 0) {}",
         {"RACE", "LIVELOCK"}},
        {"one lane's data behind its flag", "ptx::sync_warp();\n    if (t == 0) ptx::st", "if (t == 0) ptx::st", {"RACE"}},
        {"a flag of the block alone",
         "if (t == 0) ptx::st_release_gpu(p.flags + b, 1u);",
         "if (t == 0) { ptx::fence_block(); ptx::st_relaxed_gpu(p.flags + b, 1u); }",
         {"RACE"}},
        {"a fence of the cluster",
         "if (t == 0) ptx::st_release_gpu(p.flags + b, 1u);",
         "if (t == 0) { ptx::fence_cluster(); ptx::st_relaxed_gpu(p.flags + b, 1u); }",
         {"RACE"}},
        {"a release that a compare-and-swap would have made, had it not failed",
         "ptx::st_release_gpu(p.flags + b, 1u);",
         "ptx::atomic_exch(p.flags + b, 1u), ptx::atomic_cas_acq_rel_gpu(p.flags + b, 0u, 1u);",
         {"RACE"}}}},
      // A later block adds to what an earlier one has left, block by block from the last.
      {"chain_from_the_end",
       32,
       4,
       0,
       R"(
  if (threadIdx.x == 0) {
    const u32 b = gridDim.x - 1 - blockIdx.x;
    f32 sum = p.in[80 * b];
    if (b > 0) {
      while (ptx::ld_acquire_gpu(p.flags + b - 1) == 0) {}
      sum += p.scratch[b - 1];
    }
    p.scratch[b] = sum;
    ptx::st_release_gpu(p.flags + b, 1u);
    p.out[b] = sum;
  }
)",
       {{"a flag that is not waited for",
         "while (ptx::ld_acquire_gpu(p.flags + b - 1) == 0) {}",
         "ptx::ld_acquire_gpu(p.flags + b - 1);",
         {"RACE", "UNINIT"},
         HiddenBy::last_first},
        {"a flag loaded without acquire", "ptx::ld_acquire_gpu", "ptx::ld_relaxed_gpu", {"RACE"}}}},
      // A word that blocks count in.
      {"one_counter",
       32,
       3,
       0,
       R"(
  if (threadIdx.x == 0) {
    if (blockIdx.x < 2) ptx::atomic_add(reinterpret_cast<u64*>(p.flags), u64(1));
    else while (ptx::atomic_add(reinterpret_cast<u64*>(p.flags), u64(0)) != 2) { if (ptx::ld_relaxed_gpu(p.flags + 2) == 77) break; }
    p.out[blockIdx.x] = 1;
  }
)",
       {{"polled by words of another size",
         "else while (ptx::atomic_add(reinterpret_cast<u64*>(p.flags), u64(0)) != 2) { if (ptx::ld_relaxed_gpu(p.flags + 2) == 77) break; }",
         "else while (ptx::ld_relaxed_gpu(p.flags) != 2) {}",
         {"RACE"}}}},
      // What a launch writes it does not read by the read-only path.
      {"read_back",
       64,
       2,
       0,
       R"(
  const u32 t = threadIdx.x;
  if (blockIdx.x == 0) p.scratch[t] = ptx::ld_global_nc<f32>(p.in + t);
  ptx::sync_block();
  f32 x = 0;
  if (blockIdx.x == 0) x = ptx::ld_global<f32>(p.scratch + 63 - t);
  if (t == 0) p.out[blockIdx.x] = x;
)",
       {{"by the read-only path", "ptx::ld_global<f32>(p.scratch", "ptx::ld_global_nc<f32>(p.scratch", {"RACE"}},
        {"read by that path before it is written",
         "if (blockIdx.x == 0) p.scratch[t]",
         "if (blockIdx.x == 0 && ptx::ld_global_nc<f32>(p.scratch + t) != 77) p.scratch[t]",
         {"RACE", "UNINIT"}}}},
      // Lanes that go do not take part in what comes.
      {"early_lanes",
       32,
       2,
       0,
       R"(
  const u32 lane = ptx::lane_id();
  u32 v = 3 * lane;
  if (lane >= 20) return;
  v = ptx::shfl(v, 5, 32, 0xfffffu);
  if (lane == 0) p.out[blockIdx.x] = f32(v);
)",
       {{"the value of a lane that has left", "ptx::shfl(v, 5, 32, 0xfffffu)", "ptx::shfl(v, 25)", {"DIVERGENCE"}}}},
      // A copy that is announced, waited for by a loop of looks.
      {"looks",
       64,
       2,
       1024,
       R"(
  QN_SMEM(smem);
  const u32 t = threadIdx.x, base = ptx::smem_address(smem), full = base + 256;
  if (t == 0) {
    ptx::mbarrier_init(full, 1);
    ptx::fence_mbarrier_init();
    ptx::mbarrier_arrive_expect_tx(full, 128);
    ptx::bulk_load(base, p.in + 80 * blockIdx.x, 128, full);
  }
  ptx::sync_block();
  while (!ptx::mbarrier_try_wait(full, 0)) {}
  const f32 x = ptx::ld_shared<f32>(smem + 4 * (t % 32));
  ptx::cp_async<4>(base + 512 + 4 * t, p.in + t);
  ptx::cp_async_wait_all();
  if (t == 33) p.out[blockIdx.x] = x;
)",
       {{"one look", "while (!ptx::mbarrier_try_wait(full, 0)) {}", "ptx::mbarrier_try_wait(full, 0);", {"RACE", "UNINIT"}},
        {"two looks",
         "while (!ptx::mbarrier_try_wait(full, 0)) {}",
         "if (!ptx::mbarrier_try_wait(full, 0)) ptx::mbarrier_try_wait(full, 0);",
         {"RACE", "UNINIT"}},
        {"a parity that is none", "ptx::mbarrier_try_wait(full, 0)", "ptx::mbarrier_try_wait(full, 2)", {"MBARRIER"}},
        {"a copy that nobody waits for", "  ptx::cp_async_wait_all();\n", "", {"ASYNC", "RACE"}}}},
      // Two announced copies: the second one is asked for once, as a hint, while the first is used.
      {"one_hint",
       64,
       2,
       1024,
       R"(
  QN_SMEM(smem);
  const u32 t = threadIdx.x, base = ptx::smem_address(smem), first = base + 768, second = first + 8;
  if (t == 0) {
    ptx::mbarrier_init(first, 1);
    ptx::mbarrier_init(second, 1);
    ptx::fence_mbarrier_init();
    ptx::mbarrier_arrive_expect_tx(first, 128);
    ptx::bulk_load(base, p.in + 80 * blockIdx.x, 128, first);
    ptx::mbarrier_arrive_expect_tx(second, 128);
    ptx::bulk_load(base + 128, p.in + 32, 128, second);
  }
  ptx::sync_block();
  ptx::mbarrier_wait(first, 0);
  const bool full = ptx::mbarrier_try_wait(second, 0);
  f32 x = ptx::ld_shared<f32>(smem + 4 * (t % 32));
  if (!full) ptx::mbarrier_wait(second, 0);
  x = x + ptx::ld_shared<f32>(smem + 128 + 4 * (t % 32));
  ptx::st_shared(smem + 256 + 4 * t, x);  // so that each thread needs its x
  if (t == 33) p.out[blockIdx.x] = x;
)",
       {{"the hint asks the wrong barrier", "ptx::mbarrier_try_wait(second, 0)", "ptx::mbarrier_try_wait(first, 0)", {"RACE", "UNINIT"}},
        {"the hint is not heeded", "  if (!full) ptx::mbarrier_wait(second, 0);\n", "", {"RACE", "UNINIT"}}}},
      // Blocks of a cluster hand each other a word.
      {"mailbox",
       32,
       2,
       512,
       R"(
  QN_SMEM(smem);
  const u32 t = threadIdx.x, base = ptx::smem_address(smem), rank = ptx::cluster_rank(), full = base + 256, peer = rank ^ 1;
  if (t == 0) {
    ptx::mbarrier_init(full, 32);
    ptx::fence_mbarrier_init();
  }
  ptx::cluster_arrive_relaxed();
  ptx::cluster_wait();
  ptx::st_shared_cluster(ptx::cluster_address(base + 4 * t, peer), 7 * t);
  ptx::mbarrier_arrive_cluster(ptx::cluster_address(full, peer));
  ptx::mbarrier_wait_cluster(full, 0);
  const u32 x = ptx::ld_shared<u32>(smem + 4 * (31 - t));
  ptx::cluster_arrive();
  ptx::cluster_wait();
  if (t == 0) p.out[blockIdx.x] = f32(x);
)",
       {{"an arrival that tells of reads alone", "ptx::mbarrier_arrive_cluster(", "ptx::mbarrier_arrive_remote(", {"RACE"}},
        {"a wait that sees the own block alone", "ptx::mbarrier_wait_cluster(", "ptx::mbarrier_wait(", {"RACE"}},
        {"a cluster barrier in two places",
         "  ptx::cluster_arrive_relaxed();\n  ptx::cluster_wait();\n",
         "  ptx::cluster_arrive_relaxed();\n  if (t == 0) {\n    ptx::cluster_wait();\n  } else {\n    ptx::cluster_wait();\n  }\n",
         {"DIVERGENCE"}}},
       2},
      // A block reads what the other gave it, tells, and is given more.
      {"told_that_it_was_read",
       32,
       2,
       512,
       R"(
  QN_SMEM(smem);
  const u32 t = threadIdx.x, base = ptx::smem_address(smem), rank = ptx::cluster_rank(), full = base + 256, free = base + 264, peer = rank ^ 1;
  if (t == 0) {
    ptx::mbarrier_init(full, 1);
    ptx::mbarrier_init(free, 32);
    ptx::fence_mbarrier_init();
  }
  ptx::cluster_arrive_relaxed();
  ptx::cluster_wait();
  u32 x = 0;
  for (u32 round = 0; round < 3; ++round) {
    if (round) ptx::mbarrier_wait(free, (round - 1) & 1);
    if (t == 0) ptx::mbarrier_arrive_expect_tx(full, 128);
    ptx::st_async(ptx::cluster_address(base + 4 * t, peer), t + round, ptx::cluster_address(full, peer));
    ptx::mbarrier_wait(full, round & 1);
    x += ptx::ld_shared<u32>(smem + 4 * (31 - t));
    ptx::mbarrier_arrive_remote(ptx::cluster_address(free, peer));
  }
  ptx::fence_proxy_async_shared();
  ptx::sync_warp();
  if (t == 0) {
    ptx::bulk_store(p.scratch + 32 * rank, base, 128);
    ptx::bulk_commit();
    ptx::bulk_wait<0>();
  }
  ptx::cluster_arrive();
  ptx::cluster_wait();
  if (t == 0) p.out[blockIdx.x] = f32(x);
)",
       {{"given before it has told", "    if (round) ptx::mbarrier_wait(free, (round - 1) & 1);\n", "", {"RACE", "MBARRIER"}},
        {"no proxy fence between the other block's store and the copy engine", "  ptx::fence_proxy_async_shared();\n", "", {"PROXY"}}},
       2},
      // Two blocks add to the same sums, a third copies them.
      {"added_then_copied",
       32,
       3,
       512,
       R"(
  QN_SMEM(smem);
  const u32 t = threadIdx.x, b = blockIdx.x, base = ptx::smem_address(smem), full = base + 256;
  f32* const sums = reinterpret_cast<f32*>(p.flags + 32);
  if (b < 2) {
    ptx::red_add(sums + t, p.in[80 * b + t]);
    ptx::fence_proxy_async_global();
    ptx::sync_warp();
    if (t == 0) ptx::st_release_gpu(p.flags + b, 1u);
  } else {
    if (t == 0) {
      ptx::mbarrier_init(full, 1);
      ptx::fence_mbarrier_init();
      while (ptx::ld_acquire_gpu(p.flags) == 0) {}
      while (ptx::ld_acquire_gpu(p.flags + 1) == 0) {}
      ptx::mbarrier_arrive_expect_tx(full, 128);
      ptx::bulk_load(base, sums, 128, full);
    }
    ptx::sync_warp();
    ptx::mbarrier_wait(full, 0);
    if (t == 0) p.out[0] = ptx::ld_shared<f32>(smem);
  }
)",
       {{"the first adder's proxy fence is missing",
         "    ptx::fence_proxy_async_global();\n",
         "    if (b) ptx::fence_proxy_async_global();\n",
         {"PROXY"}},
        {"the second adder's proxy fence is missing",
         "    ptx::fence_proxy_async_global();\n",
         "    if (!b) ptx::fence_proxy_async_global();\n",
         {"PROXY"}}}},
      // A warpgroup's instructions are executed by all lanes in one place.
      {"one_place",
       128,
       2,
       512,
       R"(
  QN_SMEM(smem);
  const u32 t = threadIdx.x;
  if (t < 64) ptx::st_shared(smem + 4 * t, ptx::pack_bf16(f32(t % 7), p.in[t]));
  ptx::fence_proxy_async_shared();
  ptx::sync_block();
  const MatrixDescriptor b = k_major_descriptor(ptx::smem_address(smem), Swizzle::none, 128, 128);
  f32 d[4] = {};
  u32 a[4];
  for (u32 i = 0; i < 4; ++i) a[i] = ptx::pack_bf16(f32(t), f32(i));
  ptx::wgmma_hold(a);
  ptx::wgmma_fence();
  ptx::wgmma<bf16>(d, a, b, true);
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
  ptx::wgmma_hold(d);
  if (t == 0) p.out[blockIdx.x] = d[0];
)",
       {{"a wait in each of two branches",
         "  ptx::wgmma_wait<0>();\n",
         "  if (t % 32 == 0) {\n    ptx::wgmma_wait<0>();\n  } else {\n    ptx::wgmma_wait<0>();\n  }\n",
         {"DIVERGENCE"}},
        {"a wait by one lane before the others'",
         "  ptx::wgmma_wait<0>();\n",
         "  if (t % 32 == 0) {\n    ptx::wgmma_wait<0>();\n    if (p.n == 77) p.flags[t] = 1;\n  }\n  if (t % 32) {\n    ptx::wgmma_wait<0>();\n  }\n",
         {"DIVERGENCE"}},
        {"committed in two branches",
         "  ptx::wgmma_commit();\n",
         "  if (t % 32 < 16) {\n    ptx::wgmma_commit();\n  } else {\n    ptx::wgmma_commit();\n  }\n",
         {"DIVERGENCE"}},
        {"accumulators that the compiler may read before the wait", "  ptx::wgmma_hold(d);\n", "", {"WGMMA"}}},
       1,
       0,
       "quern/kit/wgmma.cuh"},
      // The same of the products of warps.
      {"one_place_of_a_warp",
       32,
       2,
       0,
       R"(
  const u32 t = threadIdx.x;
  f32 d[4] = {};
  u32 a[4], b[2];
  for (u32 i = 0; i < 4; ++i) a[i] = ptx::pack_bf16(f32(t), p.in[t]);
  for (u32 i = 0; i < 2; ++i) b[i] = ptx::pack_bf16(f32(i), f32(t));
  ptx::mma_m16n8k16_bf16(d, a, b);
  if (t == 0) p.out[blockIdx.x] = d[0];
)",
       {{"a product in each of two branches",
         "  ptx::mma_m16n8k16_bf16(d, a, b);\n",
         "  if (t < 16) {\n    ptx::mma_m16n8k16_bf16(d, a, b);\n  } else {\n    ptx::mma_m16n8k16_bf16(d, a, b);\n  }\n",
         {"DIVERGENCE"}}}},
      // Barriers are made anew for each tile; a block may have made any number of them.
      {"barriers_anew",
       32,
       1,
       512,
       R"(
  QN_SMEM(smem);
  const u32 t = threadIdx.x, base = ptx::smem_address(smem), full = base + 256;
  f32 sum = 0;
  for (u32 tile = 0; tile < 20000; ++tile) {
    if (t == 0) {
      ptx::mbarrier_init(full, 1);
      ptx::fence_mbarrier_init();
      ptx::mbarrier_arrive_expect_tx(full, 16);
      ptx::bulk_load(base, p.in, 16, full);
      ptx::mbarrier_wait(full, 0);
      sum += ptx::ld_shared<f32>(smem);
      ptx::mbarrier_inval(full);
      ptx::fence_proxy_async_shared();
    }
  }
  if (t == 0) p.out[0] = sum;
)",
       {{"the copy is not waited for",
         "      ptx::mbarrier_wait(full, 0);\n",
         "      if (tile < 19999) ptx::mbarrier_wait(full, 0);\n",
         {"RACE", "MBARRIER", "ASYNC"}}}},
      // A block tells the next, which tells the one after it, that a block's words have been read.
      {"told_by_two",
       32,
       4,
       512,
       R"(
  QN_SMEM(smem);
  const u32 t = threadIdx.x, base = ptx::smem_address(smem), told = base + 256, rank = ptx::cluster_rank();
  if (t == 0) {
    ptx::mbarrier_init(told, 1);
    ptx::fence_mbarrier_init();
  }
  ptx::st_shared(smem + 4 * t, t);
  ptx::cluster_arrive();
  ptx::cluster_wait();
  if (rank == 2) {
    const u32 x = ptx::ld_shared<u32>(smem + 4 * (31 - t));
    if (t == 0) p.out[2] = f32(x);
    ptx::sync_warp();
    if (t == 0) ptx::mbarrier_arrive_remote(ptx::cluster_address(told, 1));
  }
  if (rank == 1 && t == 0) {
    ptx::mbarrier_wait(told, 0);
    ptx::mbarrier_arrive_remote(ptx::cluster_address(told, 0));
  }
  if (rank == 0) {
    ptx::mbarrier_wait(told, 0);
    ptx::st_shared_cluster(ptx::cluster_address(base + 4 * t, 2), 5u);
  }
  ptx::cluster_arrive();
  ptx::cluster_wait();
)",
       {{"not waited for by the one between",
         "    ptx::mbarrier_wait(told, 0);\n    ptx::mbarrier_arrive",
         "    ptx::mbarrier_arrive",
         {"RACE"}}},
       4},
      // A thread ends an mbarrier at which another one's copy has completed.
      {"ended_by_another",
       64,
       1,
       512,
       R"(
  QN_SMEM(smem);
  const u32 t = threadIdx.x, base = ptx::smem_address(smem), full = base + 256;
  if (t == 0) {
    ptx::mbarrier_init(full, 1);
    ptx::fence_mbarrier_init();
    ptx::mbarrier_arrive_expect_tx(full, 16);
  }
  ptx::sync_block();
  if (t == 32) ptx::bulk_load(base, p.in, 16, full);
  if (t == 0) {
    ptx::mbarrier_wait(full, 0);
    p.out[0] = ptx::ld_shared<f32>(smem);
    ptx::mbarrier_inval(full);
    ptx::st_shared(smem + 256, 1u);
  }
)",
       {{"ended before the copy has come",
         "    ptx::mbarrier_wait(full, 0);\n    p.out[0] = ptx::ld_shared<f32>(smem);\n",
         "",
         {"MBARRIER", "RACE"}}}},
      // Stores of another block complete at an mbarrier that is made anew each time.
      {"stores_to_barriers_anew",
       32,
       2,
       512,
       R"(
  QN_SMEM(smem);
  const u32 t = threadIdx.x, base = ptx::smem_address(smem), full = base + 256, peer = ptx::cluster_rank() ^ 1;
  u32 x = 0;
  for (u32 round = 0; round < 50; ++round) {
    if (t == 0) {
      ptx::mbarrier_init(full, 1);
      ptx::fence_mbarrier_init();
      ptx::mbarrier_arrive_expect_tx(full, 128);
    }
    ptx::cluster_arrive();
    ptx::cluster_wait();
    ptx::st_async(ptx::cluster_address(base + 4 * t, peer), t, ptx::cluster_address(full, peer));
    ptx::mbarrier_wait(full, 0);
    x += ptx::ld_shared<u32>(smem + 4 * (31 - t));
    ptx::sync_warp();
    if (t == 0) ptx::mbarrier_inval(full);
  }
  ptx::cluster_arrive();
  ptx::cluster_wait();
  if (t == 0) p.out[blockIdx.x] = f32(x);
)",
       {},
       2},
      // A flag in shared memory, polled by the only atomic that the kit has there.
      {"flag_in_shared_memory",
       64,
       2,
       512,
       R"(
  QN_SMEM(smem);
  const u32 t = threadIdx.x;
  u32* flag = reinterpret_cast<u32*>(smem + 256);
  if (t == 0) ptx::st_shared(smem + 256, 0u);
  ptx::sync_block();
  if (t < 32) {
    ptx::st_shared(smem + 4 * t, 5 * t);
    ptx::sync_warp();
    if (t == 0) {
      ptx::fence_block();
      ptx::atomic_add_shared(flag, 1u);
    }
  } else {
    if (t == 32) {
      while (ptx::atomic_add_shared(flag, 0u) == 0) {}
      ptx::fence_block();
    }
    ptx::sync_warp();
    const u32 x = ptx::ld_shared<u32>(smem + 4 * (t - 32));
    if (t == 40) p.out[blockIdx.x] = f32(x);
  }
)",
       {{"no fence behind the loop", "== 0) {}\n      ptx::fence_block();", "== 0) {}", {"RACE"}}}},
      // Each of 1024 threads has a store of the copy engine of its own.
      {"many_stores",
       1024,
       1,
       16384,
       R"(
  QN_SMEM(smem);
  const u32 t = threadIdx.x, base = ptx::smem_address(smem);
  if (t == 0) ptx::mbarrier_init(base + 16376, 1);
  if (t < 1023) ptx::st_shared(smem + 16 * t, u32x4{t, t, t, t});
  ptx::fence_proxy_async_shared();
  if (t < 16) ptx::bulk_store(p.scratch + 4 * t, base + 16 * t, 16);
  else if (t < 1023) ptx::bulk_reduce_add(reinterpret_cast<f32*>(p.flags) + 4 * (t % 16), base + 16 * t, 16);
  ptx::bulk_commit();
  ptx::bulk_wait<0>();
  if (t == 0) p.out[0] = 1;
)",
       {}},
  };
  return all;
}

}  // namespace quern::emu::planted
