// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, j] = sum_s partials[s, i, j] + bias[j], splits in ascending order
// One block row of the grid per row, four neighbouring columns per thread.
#pragma once
#include "quern/kit/kit.cuh"
#include "quern/ops/gemm/dense_spec.h"
#include "quern/ops/gemm/dense_store.cuh"

namespace quern::gemm {

template <DenseSumConfig C> QN_DEVICE void dense_sum_splits(const DenseSumParams& p) {
  using Out = dtype_t<C.out_dtype>;
  const i64 row = blockIdx.x, column = (i64(blockIdx.y) * C.threads + threadIdx.x) * 4;
  ptx::grid_dependency_wait();
  if (column < p.n) {
    f32 sum[4], bias[4];
    const int columns = int(min_of<i64>(4, p.n - column));
    load_bias(p.bias, p.bias_dtype, column, columns, bias);
    const f32* from = static_cast<const f32*>(p.partials) + row * p.partial_stride + column;
    load_f32<f32, 4>(from, sum);
    for (int s = 1; s < p.splits; ++s) {
      f32 next[4];
      load_f32<f32, 4>(from + s * p.m * p.partial_stride, next);
      QN_UNROLL
      for (int i = 0; i < 4; ++i) sum[i] = sum[i] + next[i];
    }
    QN_UNROLL
    for (int i = 0; i < 4; ++i) sum[i] = sum[i] + bias[i];
    store_columns<Out>(static_cast<Out*>(p.out) + row * p.out_stride + column, columns, p.out_alignment, sum);
  }
  ptx::grid_launch_dependents();
}

}  // namespace quern::gemm
