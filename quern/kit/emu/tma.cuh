// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Boxes of a tensor that a tensor map describes. The map holds its specification (quern/emu/tensor_map.h); bounds,
// swizzle and when a copy completes are the runtime's.
#pragma once
#include "quern/kit/emu/bulk.cuh"

namespace quern::emu {

template <class... At>
QN_DEVICE void tensor(BulkOp op, u32 shared, const TensorMap* map, u32 mbarrier, u32 blocks, At... at) {
  static_assert(sizeof...(At) >= 1 && sizeof...(At) <= 5);
  BulkCall call{op, DType::u8, shared, 0, 0, mbarrier, blocks, sizeof...(At), {i32(at)...}, {}, const_cast<TensorMap*>(map), &kSums};
  current()->runtime->bulk(call);
}

}  // namespace quern::emu

namespace quern::ptx {

/// A box from global memory to shared.
template <class... At>
QN_DEVICE void tma_load(u32 to, const TensorMap* map, u32 mbarrier, CachePolicy, At... at) {
  emu::tensor(emu::BulkOp::tensor_load, to, map, mbarrier, 0, at...);
}
/// To the same offset, and the mbarrier of the same offset, of each block of the cluster in the mask.
template <class... At>
QN_DEVICE void tma_load_multicast(u32 to, const TensorMap* map, u32 mbarrier, u16 blocks, CachePolicy, At... at) {
  emu::tensor(emu::BulkOp::tensor_load_multicast, to, map, mbarrier, blocks, at...);
}
/// A box from shared memory to global; belongs to the thread's open group (bulk_commit).
template <class... At>
QN_DEVICE void tma_store(const TensorMap* map, u32 from, CachePolicy, At... at) {
  emu::tensor(emu::BulkOp::tensor_store, from, map, 0, 0, at...);
}
/// The same, added to what lies there: f32, bf16 or f16 as the map says, each element by itself.
template <class... At>
QN_DEVICE void tma_reduce_add(const TensorMap* map, u32 from, CachePolicy, At... at) {
  emu::tensor(emu::BulkOp::tensor_reduce_add, from, map, 0, 0, at...);
}
/// A box into the L2.
template <class... At>
QN_DEVICE void tma_prefetch(const TensorMap* map, CachePolicy, At... at) {
  emu::tensor(emu::BulkOp::tensor_prefetch, 0, map, 0, 0, at...);
}
/// The map itself, into the cache that copies read maps from.
QN_DEVICE void prefetch_tensormap(const TensorMap* map) { emu::tensor(emu::BulkOp::tensormap_prefetch, 0, map, 0, 0, 0); }

}  // namespace quern::ptx
