// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[c] = sum_p parts[p, c]
// A block has threads / lanes threads side by side, each with `vector` columns, in `lanes` part lanes: lane l adds parts l,
// l + lanes, l + 2 lanes, ...; then one thread a column adds the lanes in ascending order. Row y of the grid makes out[y].
#pragma once
#include "quern/bricks/parts/spec.h"
#include "quern/kit/kit.cuh"

namespace quern::parts {

template <SumPartsConfig C> QN_DEVICE void sum_parts(const SumPartsParams& p) {
  using Out = dtype_t<C.dtype>;
  constexpr int kAcross = C.threads / C.lanes, kColumns = sum_parts_columns(C);
  static_assert(kColumns <= C.threads, "one thread a column");
  QN_SMEM(smem);
  f32* const sums = reinterpret_cast<f32*>(smem);  // [lanes][columns]
  const i64 first = i64(blockIdx.x) * kColumns;
  const int column = int(threadIdx.x) % kAcross * C.vector, lane = int(threadIdx.x) / kAcross;
  const i64 begin = i64(blockIdx.y) * p.second + first + column;
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  f32 sum[C.vector] = {};
  if (first + column < p.columns)
    for (i64 b = lane; b < p.count; b += C.lanes) {
      f32 part[C.vector];
      load_f32<f32, C.vector>(static_cast<const f32*>(p.parts) + (begin + b * p.part_stride),
                              part);  // where there are no parts, there is no memory for them
      QN_UNROLL
      for (int i = 0; i < C.vector; ++i) sum[i] = sum[i] + part[i];
    }
  QN_UNROLL
  for (int i = 0; i < C.vector; ++i) sums[lane * kColumns + column + i] = sum[i];
  ptx::sync_block();
  const i64 at = first + int(threadIdx.x);
  if (int(threadIdx.x) < kColumns && at < p.columns) {
    f32 total[1] = {sums[threadIdx.x]};
    QN_UNROLL
    for (int l = 1; l < C.lanes; ++l) total[0] = total[0] + sums[l * kColumns + int(threadIdx.x)];
    store_f32<Out, 1>(static_cast<Out*>(blockIdx.y == 0 ? p.out[0] : p.out[1]) + at, total);
  }
}

}  // namespace quern::parts
