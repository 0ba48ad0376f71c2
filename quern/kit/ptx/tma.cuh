// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// 9.7.9.25.5 cp.async.bulk.tensor: boxes of a tensor that a tensor map describes, 1 to 5 dimensions, coordinates
// innermost first. A load fills what lies outside the tensor with zeros and counts the whole box at its mbarrier; a
// store leaves it out, but for what completes 16 bytes at a row's end, which an H200 writes. Along a row a box begins at a
// multiple of 16 bytes, and one that is stored begins at no coordinate below 0: an H200 calls others an illegal
// instruction. Boxes lie in shared memory at multiples of 128 bytes, swizzled ones best at multiples of 1024. A warp's
// requests are best made by the lane that elect_sync() picks (warp.cuh). sm_90 and above.
#pragma once
#include "quern/kit/ptx/entry.cuh"

namespace quern::ptx {

/// A box from global memory to shared.
QN_DEVICE void tma_load(u32 to, const TensorMap* map, u32 mbarrier, CachePolicy policy, i32 c0) {
  asm volatile(
      "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, "
      "{%4}], [%2], %3;" ::"r"(to),
      "l"(map), "r"(mbarrier), "l"(u64(policy)), "r"(c0)
      : "memory");
}
QN_DEVICE void tma_load(u32 to, const TensorMap* map, u32 mbarrier, CachePolicy policy, i32 c0, i32 c1) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, "
      "{%4, %5}], [%2], %3;" ::"r"(to),
      "l"(map), "r"(mbarrier), "l"(u64(policy)), "r"(c0), "r"(c1)
      : "memory");
}
QN_DEVICE void tma_load(u32 to, const TensorMap* map, u32 mbarrier, CachePolicy policy, i32 c0, i32 c1, i32 c2) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, "
      "{%4, %5, %6}], [%2], %3;" ::"r"(to),
      "l"(map), "r"(mbarrier), "l"(u64(policy)), "r"(c0), "r"(c1), "r"(c2)
      : "memory");
}
QN_DEVICE void tma_load(u32 to, const TensorMap* map, u32 mbarrier, CachePolicy policy, i32 c0, i32 c1, i32 c2, i32 c3) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, "
      "{%4, %5, %6, %7}], [%2], %3;" ::"r"(to),
      "l"(map), "r"(mbarrier), "l"(u64(policy)), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
      : "memory");
}
QN_DEVICE void tma_load(u32 to, const TensorMap* map, u32 mbarrier, CachePolicy policy, i32 c0, i32 c1, i32 c2, i32 c3, i32 c4) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, "
      "{%4, %5, %6, %7, %8}], [%2], %3;" ::"r"(to),
      "l"(map), "r"(mbarrier), "l"(u64(policy)), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
      : "memory");
}
/// To the same offset, and the mbarrier of the same offset, of each block of the cluster in the mask.
QN_DEVICE void tma_load_multicast(u32 to, const TensorMap* map, u32 mbarrier, u16 blocks, CachePolicy policy, i32 c0) {
  asm volatile(
      "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_"
      "hint "
      "[%0], [%1, {%5}], [%2], %3, %4;" ::"r"(to),
      "l"(map), "r"(mbarrier), "h"(blocks), "l"(u64(policy)), "r"(c0)
      : "memory");
}
QN_DEVICE void tma_load_multicast(u32 to, const TensorMap* map, u32 mbarrier, u16 blocks, CachePolicy policy, i32 c0, i32 c1) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_"
      "hint "
      "[%0], [%1, {%5, %6}], [%2], %3, %4;" ::"r"(to),
      "l"(map), "r"(mbarrier), "h"(blocks), "l"(u64(policy)), "r"(c0), "r"(c1)
      : "memory");
}
QN_DEVICE void tma_load_multicast(u32 to, const TensorMap* map, u32 mbarrier, u16 blocks, CachePolicy policy, i32 c0, i32 c1, i32 c2) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_"
      "hint "
      "[%0], [%1, {%5, %6, %7}], [%2], %3, %4;" ::"r"(to),
      "l"(map), "r"(mbarrier), "h"(blocks), "l"(u64(policy)), "r"(c0), "r"(c1), "r"(c2)
      : "memory");
}
QN_DEVICE void tma_load_multicast(u32 to, const TensorMap* map, u32 mbarrier, u16 blocks, CachePolicy policy, i32 c0, i32 c1, i32 c2,
                                  i32 c3) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_"
      "hint "
      "[%0], [%1, {%5, %6, %7, %8}], [%2], %3, %4;" ::"r"(to),
      "l"(map), "r"(mbarrier), "h"(blocks), "l"(u64(policy)), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
      : "memory");
}
QN_DEVICE void tma_load_multicast(u32 to, const TensorMap* map, u32 mbarrier, u16 blocks, CachePolicy policy, i32 c0, i32 c1, i32 c2,
                                  i32 c3, i32 c4) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_"
      "hint "
      "[%0], [%1, {%5, %6, %7, %8, %9}], [%2], %3, %4;" ::"r"(to),
      "l"(map), "r"(mbarrier), "h"(blocks), "l"(u64(policy)), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
      : "memory");
}
/// A box from shared memory to global; belongs to the thread's open group (bulk_commit).
QN_DEVICE void tma_store(const TensorMap* map, u32 from, CachePolicy policy, i32 c0) {
  asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group.L2::cache_hint [%0, {%3}], [%1], %2;" ::"l"(map), "r"(from),
               "l"(u64(policy)), "r"(c0)
               : "memory");
}
QN_DEVICE void tma_store(const TensorMap* map, u32 from, CachePolicy policy, i32 c0, i32 c1) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group.L2::cache_hint [%0, {%3, %4}], [%1], %2;" ::"l"(map), "r"(from),
               "l"(u64(policy)), "r"(c0), "r"(c1)
               : "memory");
}
QN_DEVICE void tma_store(const TensorMap* map, u32 from, CachePolicy policy, i32 c0, i32 c1, i32 c2) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group.L2::cache_hint [%0, {%3, %4, %5}], [%1], %2;" ::"l"(map),
               "r"(from), "l"(u64(policy)), "r"(c0), "r"(c1), "r"(c2)
               : "memory");
}
QN_DEVICE void tma_store(const TensorMap* map, u32 from, CachePolicy policy, i32 c0, i32 c1, i32 c2, i32 c3) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group.L2::cache_hint [%0, {%3, %4, %5, %6}], [%1], %2;" ::"l"(map),
               "r"(from), "l"(u64(policy)), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
               : "memory");
}
QN_DEVICE void tma_store(const TensorMap* map, u32 from, CachePolicy policy, i32 c0, i32 c1, i32 c2, i32 c3, i32 c4) {
  asm volatile(
      "cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group.L2::cache_hint [%0, {%3, %4, %5, %6, %7}], [%1], "
      "%2;" ::"l"(map),
      "r"(from), "l"(u64(policy)), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
      : "memory");
}
/// The same, added to what lies there: f32, bf16 or f16 as the map says, each element by itself.
QN_DEVICE void tma_reduce_add(const TensorMap* map, u32 from, CachePolicy policy, i32 c0) {
  asm volatile(
      "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group.L2::cache_hint [%0, {%3}], [%1], "
      "%2;" ::"l"(map),
      "r"(from), "l"(u64(policy)), "r"(c0)
      : "memory");
}
QN_DEVICE void tma_reduce_add(const TensorMap* map, u32 from, CachePolicy policy, i32 c0, i32 c1) {
  asm volatile(
      "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group.L2::cache_hint [%0, {%3, %4}], [%1], "
      "%2;" ::"l"(map),
      "r"(from), "l"(u64(policy)), "r"(c0), "r"(c1)
      : "memory");
}
QN_DEVICE void tma_reduce_add(const TensorMap* map, u32 from, CachePolicy policy, i32 c0, i32 c1, i32 c2) {
  asm volatile(
      "cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.tile.bulk_group.L2::cache_hint [%0, {%3, %4, %5}], [%1], "
      "%2;" ::"l"(map),
      "r"(from), "l"(u64(policy)), "r"(c0), "r"(c1), "r"(c2)
      : "memory");
}
QN_DEVICE void tma_reduce_add(const TensorMap* map, u32 from, CachePolicy policy, i32 c0, i32 c1, i32 c2, i32 c3) {
  asm volatile(
      "cp.reduce.async.bulk.tensor.4d.global.shared::cta.add.tile.bulk_group.L2::cache_hint [%0, {%3, %4, %5, %6}], "
      "[%1], "
      "%2;" ::"l"(map),
      "r"(from), "l"(u64(policy)), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
      : "memory");
}
QN_DEVICE void tma_reduce_add(const TensorMap* map, u32 from, CachePolicy policy, i32 c0, i32 c1, i32 c2, i32 c3, i32 c4) {
  asm volatile(
      "cp.reduce.async.bulk.tensor.5d.global.shared::cta.add.tile.bulk_group.L2::cache_hint [%0, {%3, %4, %5, %6, "
      "%7}], [%1], "
      "%2;" ::"l"(map),
      "r"(from), "l"(u64(policy)), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
      : "memory");
}
/// A box into the L2.
QN_DEVICE void tma_prefetch(const TensorMap* map, CachePolicy policy, i32 c0) {
  asm volatile("cp.async.bulk.prefetch.tensor.1d.L2.global.tile.L2::cache_hint [%0, {%2}], %1;" ::"l"(map), "l"(u64(policy)), "r"(c0)
               : "memory");
}
QN_DEVICE void tma_prefetch(const TensorMap* map, CachePolicy policy, i32 c0, i32 c1) {
  asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile.L2::cache_hint [%0, {%2, %3}], %1;" ::"l"(map), "l"(u64(policy)), "r"(c0),
               "r"(c1)
               : "memory");
}
QN_DEVICE void tma_prefetch(const TensorMap* map, CachePolicy policy, i32 c0, i32 c1, i32 c2) {
  asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global.tile.L2::cache_hint [%0, {%2, %3, %4}], %1;" ::"l"(map), "l"(u64(policy)),
               "r"(c0), "r"(c1), "r"(c2)
               : "memory");
}
QN_DEVICE void tma_prefetch(const TensorMap* map, CachePolicy policy, i32 c0, i32 c1, i32 c2, i32 c3) {
  asm volatile("cp.async.bulk.prefetch.tensor.4d.L2.global.tile.L2::cache_hint [%0, {%2, %3, %4, %5}], %1;" ::"l"(map), "l"(u64(policy)),
               "r"(c0), "r"(c1), "r"(c2), "r"(c3)
               : "memory");
}
QN_DEVICE void tma_prefetch(const TensorMap* map, CachePolicy policy, i32 c0, i32 c1, i32 c2, i32 c3, i32 c4) {
  asm volatile("cp.async.bulk.prefetch.tensor.5d.L2.global.tile.L2::cache_hint [%0, {%2, %3, %4, %5, %6}], %1;" ::"l"(map),
               "l"(u64(policy)), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
               : "memory");
}
/// The map itself, into the cache that copies read maps from (9.7.9.16 prefetch).
QN_DEVICE void prefetch_tensormap(const TensorMap* map) { asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory"); }

}  // namespace quern::ptx
