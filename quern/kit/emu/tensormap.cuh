// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Fields of a tensor map that lies in the block's shared memory, and its way into global memory.
#pragma once
#include "quern/kit/emu/fence.cuh"
#include "quern/kit/emu/memory.cuh"

namespace quern::emu {

struct PublishPayload {
  TensorMap* to;
  u32 from;
};
/// The lanes agree on both; the first one makes the copy.
QN_UNWATCHED __attribute__((unused)) static void mean_tensormap_publish(void** payloads, u32) {
  const PublishPayload& p = *static_cast<PublishPayload*>(payloads[0]);
  const u8* from = shared_pointer(p.from, sizeof(TensorMap), "tensormap.cp_fenceproxy");
  current()->runtime->access(0, from, sizeof(TensorMap), false, "tensormap.cp_fenceproxy");
  current()->runtime->access(0, p.to, sizeof(TensorMap), true, "tensormap.cp_fenceproxy");
  __builtin_memcpy(p.to, from, sizeof(TensorMap));
}

}  // namespace quern::emu

namespace quern::ptx {

QN_DEVICE void tensormap_replace_address(u32 map, const void* address) {
  emu::current()->runtime->tensormap_replace(map, emu::TensorMapField::address, 0, reinterpret_cast<u64>(address));
}
/// Elements of dimension `dim`, innermost 0.
template <int dim>
QN_DEVICE void tensormap_replace_extent(u32 map, u32 extent) {
  emu::current()->runtime->tensormap_replace(map, emu::TensorMapField::extent, dim, extent);
}
/// Bytes of a step of dimension dim + 1, a multiple of 16.
template <int dim>
QN_DEVICE void tensormap_replace_stride(u32 map, u64 stride) {
  emu::current()->runtime->tensormap_replace(map, emu::TensorMapField::stride, dim, stride);
}

/// By all lanes of a warp: the map in shared memory becomes the one in global memory, and is released: after a barrier
/// or a flag, its users go on with fence_proxy_tensormap_acquire.
QN_DEVICE void tensormap_publish(TensorMap* to, u32 from) {
  emu::PublishPayload payload{to, from};
  emu::current()->runtime->collective(kFullMask, emu::Collective::tensormap_publish, &payload, emu::mean_tensormap_publish, 0);
  fence_proxy_tensormap_release();
}

}  // namespace quern::ptx
