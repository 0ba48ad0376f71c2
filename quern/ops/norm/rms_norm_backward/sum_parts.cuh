// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// dw[h] = sum_b parts[b, h]
// A block has `columns` threads side by side, each with `vector` columns, in threads / columns part lanes: lane l adds parts l,
// l + lanes, l + 2 lanes, ...; then one thread a column adds the lanes in ascending order.
#pragma once
#include "quern/kit/kit.cuh"
#include "quern/ops/norm/rms_norm_backward/spec.h"

namespace quern::norm {

template <NormSumPartsConfig C> QN_DEVICE void norm_sum_parts(const NormSumPartsParams& p) {
  using Out = dtype_t<C.dtype>;
  constexpr int kLanes = C.threads / C.columns, kColumns = C.columns * C.vector;
  static_assert(kColumns <= C.threads, "one thread a column");
  QN_SMEM(smem);
  f32* const sums = reinterpret_cast<f32*>(smem);  // [lanes][columns]
  const i64 first = i64(blockIdx.x) * kColumns;
  const int column = int(threadIdx.x) % C.columns * C.vector, lane = int(threadIdx.x) / C.columns;
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  f32 sum[C.vector] = {};
  if (first + column < p.hidden)
    for (i64 b = lane; b < p.count; b += kLanes) {
      f32 part[C.vector];
      load_f32<f32, C.vector>(static_cast<const f32*>(p.parts) + b * p.part_stride + first + column, part);
      QN_UNROLL
      for (int i = 0; i < C.vector; ++i) sum[i] = sum[i] + part[i];
    }
  QN_UNROLL
  for (int i = 0; i < C.vector; ++i) sums[lane * kColumns + column + i] = sum[i];
  ptx::sync_block();
  const i64 h = first + int(threadIdx.x);
  if (int(threadIdx.x) < kColumns && h < p.hidden) {
    f32 total[1] = {sums[threadIdx.x]};
    QN_UNROLL
    for (int l = 1; l < kLanes; ++l) total[0] = total[0] + sums[l * kColumns + int(threadIdx.x)];
    store_f32<Out, 1>(static_cast<Out*>(p.dw) + h, total);
  }
}

}  // namespace quern::norm
