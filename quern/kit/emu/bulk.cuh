// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Copies of contiguous bytes by the copy engine. When one completes (at once, as late as allowed, at random) is the
// runtime's policy.
#pragma once
#include "quern/kit/emu/atomic.cuh"
#include "quern/kit/emu/convert.cuh"

namespace quern::emu {

QN_DEVICE u32 add_bf16_words(u32 stored, u32 operand) {
  return ptx::to_bf16(ptx::to_f32(bf16{u16(stored)}) + ptx::to_f32(bf16{u16(operand)})).bits;
}
QN_DEVICE u32 add_f16_words(u32 stored, u32 operand) {
  return ptx::to_f16(ptx::to_f32(f16{u16(stored)}) + ptx::to_f32(f16{u16(operand)})).bits;
}
/// How the elements of each type are added.
static constexpr Sums kSums __attribute__((unused)) = {add_f32_words, add_bf16_words, add_f16_words};

QN_DEVICE void bulk(BulkOp op, u32 shared, const void* global, u32 bytes, u32 mbarrier = 0, u32 blocks = 0, DType type = DType::u8) {
  BulkCall call{};
  call.op = op;
  call.type = type;
  call.shared = shared;
  call.bytes = bytes;
  call.mbarrier = mbarrier;
  call.blocks = blocks;
  call.global = const_cast<void*>(global);
  call.sums = &kSums;
  current()->runtime->bulk(call);
}

}  // namespace quern::emu

namespace quern::ptx {

/// From global memory to shared; counts its bytes at the mbarrier.
QN_DEVICE void bulk_load(u32 to, const void* from, u32 bytes, u32 mbarrier, CachePolicy = CachePolicy::evict_normal) {
  emu::bulk(emu::BulkOp::load, to, from, bytes, mbarrier);
}
/// To the same offset, and the mbarrier of the same offset, of each block of the cluster in the mask.
QN_DEVICE void bulk_load_multicast(u32 to, const void* from, u32 bytes, u32 mbarrier, u16 blocks, CachePolicy = CachePolicy::evict_normal) {
  emu::bulk(emu::BulkOp::load_multicast, to, from, bytes, mbarrier, blocks);
}
/// From the own shared memory to that of a block of the cluster, where the mbarrier lies too.
QN_DEVICE void bulk_copy_cluster(u32 to, u32 from, u32 bytes, u32 mbarrier) {
  emu::BulkCall call{};
  call.op = emu::BulkOp::copy_cluster;
  call.shared = to;
  call.source = from;
  call.bytes = bytes;
  call.mbarrier = mbarrier;
  emu::current()->runtime->bulk(call);
}
/// From shared memory to global; belongs to the thread's open group.
QN_DEVICE void bulk_store(void* to, u32 from, u32 bytes, CachePolicy = CachePolicy::evict_normal) {
  emu::bulk(emu::BulkOp::store, from, to, bytes);
}
/// Adds to what lies there, each element by itself; belongs to the thread's open group.
QN_DEVICE void bulk_reduce_add(f32* to, u32 from, u32 bytes) { emu::bulk(emu::BulkOp::reduce_add, from, to, bytes, 0, 0, DType::f32); }
QN_DEVICE void bulk_reduce_add(bf16* to, u32 from, u32 bytes) { emu::bulk(emu::BulkOp::reduce_add, from, to, bytes, 0, 0, DType::bf16); }
QN_DEVICE void bulk_reduce_add(f16* to, u32 from, u32 bytes) { emu::bulk(emu::BulkOp::reduce_add, from, to, bytes, 0, 0, DType::f16); }
QN_DEVICE void bulk_prefetch(const void* from, u32 bytes) { emu::bulk(emu::BulkOp::prefetch, 0, from, bytes); }

/// Closes the thread's group of stores.
QN_DEVICE void bulk_commit() { emu::current()->runtime->bulk_commit(); }
/// Waits until at most `groups_left` of the thread's newest groups are not complete: their results are visible to it.
template <int groups_left>
QN_DEVICE void bulk_wait() {
  emu::current()->runtime->bulk_wait(groups_left, false);
}
/// The same, but only until their sources have been read and may be overwritten.
template <int groups_left>
QN_DEVICE void bulk_wait_read() {
  emu::current()->runtime->bulk_wait(groups_left, true);
}

}  // namespace quern::ptx
