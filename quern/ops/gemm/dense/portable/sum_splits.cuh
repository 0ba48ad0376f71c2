// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, j] = activation(sum_s partials[s, i, j] + bias[j] + c[i, j]), splits in ascending order
// One block row of the grid per row, four neighbouring columns per thread.
#pragma once
#include "quern/bricks/gemm/store.cuh"
#include "quern/kit/kit.cuh"
#include "quern/ops/gemm/dense/portable/sum_splits_spec.h"

namespace quern::gemm {

template <DenseSumConfig C>
QN_DEVICE void dense_sum_splits(const DenseSumParams& p) {
  using T = dtype_t<C.dtype>;
  using Out = dtype_t<C.out_dtype>;
  const i64 row = blockIdx.x, column = (i64(blockIdx.y) * C.threads + threadIdx.x) * 4;
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  if (column < p.n) {
    f32 sum[4], bias[4];
    const int columns = int(min_of<i64>(4, p.n - column));
    load_bias<T>(p.bias, p.bias_dtype, column, columns, bias);
    const f32* from = static_cast<const f32*>(p.partials) + row * p.partial_stride + column;
    load_f32<f32, 4>(from, sum);
    QN_NO_UNROLL
    for (int s = 1; s < p.splits; ++s) {
      f32 next[4];
      load_f32<f32, 4>(from + s * p.m * p.partial_stride, next);
      QN_UNROLL
      for (int i = 0; i < 4; ++i) sum[i] = sum[i] + next[i];
    }
    QN_UNROLL
    for (int i = 0; i < 4; ++i) sum[i] = sum[i] + bias[i];
    Out* const out = static_cast<Out*>(p.out) + row * p.out_stride + column;
    bool wide = columns == 4 && p.out_alignment >= kWidestBytes<Out, 4>;
    if constexpr (C.has_c != 0) wide = wide && is_wide<T, 4>(p.c);
    if (wide) {
      if constexpr (C.has_c != 0) add_c<T>(p.c, row, column, sum);
      activate<C.activation>(sum);
      store_aligned<Out>(out, sum);
    } else {
      QN_UNROLL
      for (int i = 0; i < 4; ++i) {
        if (i >= columns) continue;
        f32 value[1] = {sum[i]};
        if constexpr (C.has_c != 0) add_c<T>(p.c, row, column + i, value);
        activate<C.activation>(value);
        store_one<Out>(out + i, value[0]);
      }
    }
  }
}

}  // namespace quern::gemm
