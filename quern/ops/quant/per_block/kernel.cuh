// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// scales[b, c] = max(max |x|, amax_floor) / largest over the 128 x 128 elements of block (b, c), q = x * (1 / its scale)
// A thread block holds one block of elements in registers: read once, reduced, rounded, written.
#pragma once
#include "quern/ops/quant/access/access.cuh"
#include "quern/ops/quant/per_block/spec.h"

namespace quern::quant {

/// Where a thread's access `a` lies in the block of elements, which threads walk row by row.
template <PerBlockConfig C> struct BlockPlace {
  static constexpr int kPerRow = kFp8Group / C.vector;
  static constexpr int kAccesses = kFp8Group * kPerRow / C.threads;
  static constexpr int kRowsAtOnce = C.threads / kPerRow;
  static_assert(kFp8Group * kPerRow % C.threads == 0 && C.threads % kPerRow == 0);
};

template <PerBlockConfig C> QN_DEVICE void per_block_tile(const PerBlockParams& p) {
  using T = dtype_t<C.x_dtype>;
  using Q = dtype_t<C.q_dtype>;
  using Place = BlockPlace<C>;
  QN_SMEM(smem);
  const i64 across = ceil_div<i64>(p.k, kFp8Group), down = blockIdx.x / across, right = blockIdx.x - down * across;
  const i64 row = down * kFp8Group + int(threadIdx.x) / Place::kPerRow;
  const i64 column = right * kFp8Group + int(threadIdx.x) % Place::kPerRow * C.vector;
  const T* x = static_cast<const T*>(p.x) + row * p.x_stride + column;
  Q* q = static_cast<Q*>(p.q) + row * p.q_stride + column;
  const int rows = column < p.k ? int(min_of<i64>(kFp8Group, p.n - row)) : 0;  // of this thread, from its first on
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();

  Packed<T, C.vector> packed[Place::kAccesses];
  QN_UNROLL
  for (int a = 0; a < Place::kAccesses; ++a)
    if (a * Place::kRowsAtOnce < rows) packed[a] = load_packed<T, C.vector>(x + a * Place::kRowsAtOnce * p.x_stride);
  f32 amax = 0.f;
  QN_UNROLL
  for (int a = 0; a < Place::kAccesses; ++a) {
    if (a * Place::kRowsAtOnce >= rows) continue;
    amax = amax_with(amax, packed[a]);
  }
  amax = block_max_nan<C.threads>(amax, reinterpret_cast<f32*>(smem));
  const f32 scale = fp8_scale<C.q_dtype>(amax, p.power_of_two != 0, f32(p.amax_floor)), inverse = fp8_inverse(scale);
  if (threadIdx.x == 0) static_cast<f32*>(p.scales)[down * p.scale_strides[0] + right * p.scale_strides[1]] = scale;
  QN_UNROLL
  for (int a = 0; a < Place::kAccesses; ++a) {
    if (a * Place::kRowsAtOnce >= rows) continue;
    store_quantised(q + a * Place::kRowsAtOnce * p.q_stride, packed[a], inverse);
  }
}

}  // namespace quern::quant
