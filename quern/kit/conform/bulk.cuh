// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/conform/params.h"
#include "quern/kit/world.cuh"

namespace quern::conform {

/// One warp. in: 4096 bytes. out: the same bytes reversed by 16-byte pieces, through shared memory: loads under each
/// policy, stores in three groups
QN_DEVICE void bulk_copies(const Params& p) {
  QN_SMEM(smem);
  const u32 t = threadIdx.x, base = ptx::smem_address(smem), barrier = base + 8192;
  const u8* in = static_cast<const u8*>(p.in);
  u8* out = static_cast<u8*>(p.out);
  if (t == 0) {
    ptx::mbarrier_init(barrier, 1);
    ptx::fence_mbarrier_init();
    ptx::bulk_prefetch(in, 4096);
    ptx::mbarrier_arrive_expect_tx(barrier, 4096);
    ptx::bulk_load(base, in, 1024, barrier);
    ptx::bulk_load(base + 1024, in + 1024, 1024, barrier, CachePolicy::evict_first);
    ptx::bulk_load(base + 2048, in + 2048, 2048, barrier, CachePolicy::evict_last);
  }
  ptx::sync_block();
  ptx::mbarrier_wait(barrier, 0);
  for (u32 i = t; i < 256; i += 32) ptx::st_shared(smem + 4096 + 16 * (255 - i), ptx::ld_shared<u32x4>(smem + 16 * i));
  ptx::fence_proxy_async_shared();
  ptx::sync_block();
  if (t == 0) {
    ptx::bulk_store(out, base + 4096, 16);
    ptx::bulk_commit();
    ptx::bulk_store(out + 16, base + 4096 + 16, 2032, CachePolicy::evict_first);
    ptx::bulk_commit();
    ptx::bulk_wait_read<1>();
    ptx::bulk_store(out + 2048, base + 4096 + 2048, 2048, CachePolicy::evict_last);
    ptx::bulk_commit();
    ptx::bulk_wait<1>();
    ptx::bulk_wait<0>();
  }
}

/// in: what is added, [256] each of f32, bf16, f16. out: the same layout; each of `n` blocks adds
QN_DEVICE void bulk_reductions(const Params& p) {
  QN_SMEM(smem);
  const u32 t = threadIdx.x, base = ptx::smem_address(smem);
  const u8* in = static_cast<const u8*>(p.in);
  u8* out = static_cast<u8*>(p.out);
  for (u32 i = 16 * t; i < 2048; i += 16 * 32) ptx::st_shared(smem + i, ptx::ld_global<u32x4>(in + i));
  ptx::fence_proxy_async();
  ptx::sync_block();
  if (t == 0) {
    ptx::bulk_reduce_add(reinterpret_cast<f32*>(out), base, 1024);
    ptx::bulk_reduce_add(reinterpret_cast<bf16*>(out + 1024), base + 1024, 512);
    ptx::bulk_reduce_add(reinterpret_cast<f16*>(out + 1536), base + 1536, 512);
    ptx::bulk_commit();
    ptx::bulk_wait<0>();
  }
}

}  // namespace quern::conform
