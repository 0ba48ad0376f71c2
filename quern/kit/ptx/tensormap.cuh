// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// 9.7.9.26 tensormap.replace: fields of a tensor map that lies in the block's shared memory, and 9.7.13.15.18
// tensormap.cp_fenceproxy, which puts it into global memory. sm_90a.
#pragma once
#include "quern/kit/ptx/entry.cuh"

namespace quern::ptx {

QN_DEVICE void tensormap_replace_address(u32 map, const void* address) {
  asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(map), "l"(address) : "memory");
}
/// Elements of dimension `dim`, innermost 0.
template <int dim>
QN_DEVICE void tensormap_replace_extent(u32 map, u32 extent) {
  asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], %1, %2;" ::"r"(map), "n"(dim), "r"(extent) : "memory");
}
/// Bytes of a step of dimension dim + 1, a multiple of 16.
template <int dim>
QN_DEVICE void tensormap_replace_stride(u32 map, u64 stride) {
  asm volatile("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], %1, %2;" ::"r"(map), "n"(dim), "l"(stride) : "memory");
}

/// By all lanes of a warp: the map in shared memory becomes the one in global memory, and is released: after a barrier
/// or a flag, its users go on with fence_proxy_tensormap_acquire.
QN_DEVICE void tensormap_publish(TensorMap* to, u32 from) {
  asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(to),
               "r"(from)
               : "memory");
}

}  // namespace quern::ptx
