// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/conform/params.h"
#include "quern/kit/world.cuh"

namespace quern::conform {

/// 128 threads. in: u32 [32]. out u32 [5, 128]: the neighbour's number after each of two phases, then what test_wait
/// said before and after an arrival, what a phase of copies brought, and a bit for each wait of an mbarrier that is
/// used anew.
QN_DEVICE void mbarrier_all(const Params& p) {
  QN_SMEM(smem);
  const u32 t = threadIdx.x, base = ptx::smem_address(smem);
  const u32 everyone = base, copies = base + 8, single = base + 16;
  u32* slots = reinterpret_cast<u32*>(smem + 256);
  u32* out = static_cast<u32*>(p.out);
  const u8* in = static_cast<const u8*>(p.in);
  if (t == 0) {
    ptx::mbarrier_init(everyone, 128);
    ptx::mbarrier_init(copies, 3);
    ptx::mbarrier_init(single, 1);
    ptx::fence_mbarrier_init();
  }
  ptx::sync_block();

  slots[t] = 3 * t;
  ptx::mbarrier_arrive(everyone);
  ptx::mbarrier_wait(everyone, 0);
  out[t] = slots[(t + 45) % 128];
  ptx::sync_block();

  // 1 + 95 + 32 arrivals; the others only wait.
  if (t < 64) slots[t] = 5 * t;
  if (t == 0) ptx::mbarrier_arrive(everyone, 1);
  ptx::sync_warp();
  if (t == 1) ptx::mbarrier_arrive(everyone, 95);
  if (t >= 32 && t < 64) ptx::mbarrier_arrive(everyone);
  while (!ptx::mbarrier_try_wait(everyone, 1)) {}
  out[128 + t] = t >= 32 && t < 64 ? slots[t ^ 1] : slots[32 + t % 32];

  bool before = true, after = false;
  if (t == 64) {
    before = ptx::mbarrier_test_wait(single, 0);
    ptx::mbarrier_arrive(single);
    after = ptx::mbarrier_test_wait(single, 0);
  }
  out[256 + t] = u32(before) + 2 * u32(after);

  // 16 bytes are expected by themselves, 32 with an arrival; two arrivals more.
  if (t == 0) {
    ptx::mbarrier_expect_tx(copies, 16);
    ptx::bulk_load(base + 1024, in, 16, copies);
    ptx::mbarrier_arrive(copies, 2);
  }
  if (t == 96) {
    ptx::bulk_load(base + 1040, in + 16, 32, copies, CachePolicy::evict_first);
    ptx::mbarrier_arrive_expect_tx(copies, 32);
  }
  while (!ptx::mbarrier_test_wait(copies, 0)) {}
  out[384 + t] = reinterpret_cast<const u32*>(smem + 1024)[t % 12];
  ptx::sync_block();

  if (t == 0) {
    ptx::mbarrier_inval(single);
    ptx::mbarrier_init(single, 128);
  }
  ptx::sync_block();
  u32 bits = 0;
  for (u32 phase = 0; phase < 3; ++phase) {
    bits |= u32(ptx::mbarrier_test_wait(single, (phase & 1) ^ 1)) << phase;  // the phase before is complete
    ptx::mbarrier_arrive(single);
    ptx::mbarrier_wait(single, phase & 1);
  }
  out[512 + t] = bits;
}

/// Two launches and more, each of which may overlap the one before: out[t] += 1 behind the wait
QN_DEVICE void dependent_launches(const Params& p) {
  u32* out = static_cast<u32*>(p.out);
  const u32 t = blockIdx.x * blockDim.x + threadIdx.x;
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  out[t] += 1;
}

}  // namespace quern::conform
