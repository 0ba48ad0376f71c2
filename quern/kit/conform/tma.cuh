// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/conform/params.h"
#include "quern/kit/world.cuh"

namespace quern::conform {

// Each rank is an instruction of its own, so a kernel is of one rank: `d` counts up to it.
template <int rank, int... d>
QN_DEVICE void prefetch_box(const TensorParams& p) {
  if constexpr (sizeof...(d) < rank) prefetch_box<rank, d..., int(sizeof...(d))>(p);
  else ptx::tma_prefetch(&p.from, CachePolicy::evict_normal, p.at[d]...);
}
template <int rank, int... d>
QN_DEVICE void load_box(const TensorParams& p, u32 to, u32 barrier) {
  if constexpr (sizeof...(d) < rank) load_box<rank, d..., int(sizeof...(d))>(p, to, barrier);
  else ptx::tma_load(to, &p.from, barrier, CachePolicy::evict_first, p.at[d]...);
}
template <int rank, int... d>
QN_DEVICE void load_box_multicast(const TensorParams& p, u32 to, u32 barrier, u16 blocks) {
  if constexpr (sizeof...(d) < rank) load_box_multicast<rank, d..., int(sizeof...(d))>(p, to, barrier, blocks);
  else ptx::tma_load_multicast(to, &p.from, barrier, blocks, CachePolicy::evict_last, p.at[d]...);
}
template <int rank, int... d>
QN_DEVICE void store_box(const TensorParams& p, u32 from) {
  if constexpr (sizeof...(d) < rank) store_box<rank, d..., int(sizeof...(d))>(p, from);
  else ptx::tma_store(&p.to, from, CachePolicy::evict_normal, p.store[d]...);
}
template <int rank, int... d>
QN_DEVICE void add_box(const TensorParams& p, u32 from) {
  if constexpr (sizeof...(d) < rank) add_box<rank, d..., int(sizeof...(d))>(p, from);
  else ptx::tma_reduce_add(&p.to, from, CachePolicy::evict_normal, p.store[d]...);
}

/// One warp. Loads a box, copies the bytes of shared memory as they lie to out, then stores the box by the other map.
template <int rank, bool add>
QN_DEVICE void tma_copy(const TensorParams& p) {
  QN_SMEM(smem);
  const u32 t = threadIdx.x, base = ptx::smem_address(smem), box = base + 1024;
  if (t == 0) {
    ptx::prefetch_tensormap(&p.from);
    prefetch_box<rank>(p);
    ptx::mbarrier_init(base, 1);
    ptx::fence_mbarrier_init();
    ptx::mbarrier_arrive_expect_tx(base, u32(p.bytes));
    load_box<rank>(p, box, base);
  }
  ptx::sync_block();
  ptx::mbarrier_wait(base, 0);
  u8* out = static_cast<u8*>(p.out);
  for (i32 i = i32(t) * 16; i < p.bytes; i += 512) ptx::st_global(out + i, ptx::ld_shared<u32x4>(smem + 1024 + i));
  if (t == 0) {
    if constexpr (add) add_box<rank>(p, box);
    else store_box<rank>(p, box);
    ptx::bulk_commit();
    ptx::bulk_wait<0>();
  }
}

/// Clusters of two. Each block multicasts a box to both: block r's lies behind r boxes. out: [block, box of 0, box of
/// 1]
template <int rank>
QN_DEVICE void tma_multicast(const TensorParams& p) {
  QN_SMEM(smem);
  const u32 t = threadIdx.x, base = ptx::smem_address(smem), block = ptx::cluster_rank();
  if (t == 0) {
    ptx::mbarrier_init(base, 1);
    ptx::fence_mbarrier_init();
    ptx::mbarrier_arrive_expect_tx(base, 2 * u32(p.bytes) + 64);
  }
  ptx::cluster_arrive_relaxed();
  ptx::cluster_wait();
  if (t == 0) {
    load_box_multicast<rank>(p, base + 1024 + block * u32(p.bytes), base, 3);
    if (block == 1) ptx::bulk_load_multicast(base + 512, p.in, 64, base, 3, CachePolicy::evict_first);
  }
  ptx::mbarrier_wait(base, 0);
  u8* out = static_cast<u8*>(p.out) + block * (2 * p.bytes + 64);
  for (i32 i = i32(t) * 16; i < 2 * p.bytes; i += 512) ptx::st_global(out + i, ptx::ld_shared<u32x4>(smem + 1024 + i));
  if (t < 4) ptx::st_global(out + 2 * p.bytes + 16 * t, ptx::ld_shared<u32x4>(smem + 512 + 16 * t));
  ptx::cluster_arrive();
  ptx::cluster_wait();
}

/// One warp. out begins with two maps' places. The map `from` is taken into shared memory, made one of a row of `n`
/// elements further on and `n` bytes a row less, and put to out[0]; the map `to` is written to out[1] by ordinary
/// stores. Then boxes by both: out + 256
QN_DEVICE void tensormap_made_on_the_device(const TensorParams& p) {
  QN_SMEM(smem);
  const u32 t = threadIdx.x, base = ptx::smem_address(smem), barrier = base + 512, box = base + 1024;
  TensorMap* maps = static_cast<TensorMap*>(p.out);
  if (t == 0) {
    ptx::mbarrier_init(barrier, 1);
    ptx::fence_mbarrier_init();
  }
  ptx::st_shared(smem + 4 * t, reinterpret_cast<const u32*>(&p.from)[t]);
  ptx::st_global(reinterpret_cast<u32*>(maps + 1) + t, reinterpret_cast<const u32*>(&p.to)[t]);
  ptx::sync_warp();
  if (t == 0) {
    ptx::tensormap_replace_address(base, static_cast<const u8*>(p.in) + p.n);
    ptx::tensormap_replace_extent<0>(base, u32(p.store[0]));
    ptx::tensormap_replace_extent<1>(base, u32(p.store[1]));
    ptx::tensormap_replace_stride<0>(base, u64(p.store[2]));
  }
  ptx::sync_warp();
  ptx::tensormap_publish(maps, base);
  ptx::fence_proxy_tensormap_release();
  ptx::sync_warp();
  u8* out = static_cast<u8*>(p.out) + 256;
  for (u32 i = 0; i < 2; ++i) {
    if (t == 0) {
      ptx::fence_proxy_tensormap_acquire(maps + i);
      ptx::mbarrier_arrive_expect_tx(barrier, u32(p.bytes));
      ptx::tma_load(box, maps + i, barrier, CachePolicy::evict_normal, p.at[0], p.at[1]);
    }
    ptx::sync_warp();
    ptx::mbarrier_wait(barrier, i);
    for (i32 j = i32(t) * 16; j < p.bytes; j += 512) ptx::st_global(out + i * p.bytes + j, ptx::ld_shared<u32x4>(smem + 1024 + j));
    ptx::sync_warp();
  }
}

/// in u32 [32]; `to` maps out, u32 [32]. Ordinary stores to global memory, then a bulk load of them: out[i] = 2 in[i] +
/// 1
QN_DEVICE void load_after_ordinary_stores(const Params& p) {
  QN_SMEM(smem);
  const u32 t = threadIdx.x, base = ptx::smem_address(smem);
  u32* out = static_cast<u32*>(p.out);
  if (t == 0) {
    ptx::mbarrier_init(base, 1);
    ptx::fence_mbarrier_init();
  }
  out[t] = 2 * static_cast<const u32*>(p.in)[t];
  ptx::fence_proxy_async_global();
  ptx::sync_block();
  if (t == 0) {
    ptx::mbarrier_arrive_expect_tx(base, 128);
    ptx::bulk_load(base + 128, out, 128, base);
  }
  ptx::mbarrier_wait(base, 0);
  out[t] = reinterpret_cast<const u32*>(smem + 128)[t] + 1;
}

}  // namespace quern::conform
