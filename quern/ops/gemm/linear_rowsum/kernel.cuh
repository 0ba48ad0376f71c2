// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[c, i] = sum of a[i, x] * column_sums[x] over the columns x of chunk c, + sum of the bias where c = 0
// A chunk belongs to a few lanes, a warp or a block: each_dot.
#pragma once
#include "quern/bricks/rows/dots.cuh"
#include "quern/bricks/rows/whole.cuh"
#include "quern/ops/gemm/linear_rowsum/spec.h"

namespace quern::gemm {

template <LinearRowsumConfig C> QN_DEVICE void linear_rowsum_dots(const LinearRowsumParams& p) {
  using T = dtype_t<C.dtype>;
  using Out = dtype_t<C.out_dtype>;
  constexpr int kUnit = 16 / size_of(C.dtype), kVector = C.dots.vector;
  QN_SMEM(smem);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  rows::each_dot<C.dots, kUnit, C.threads>(
      p.m, p.k, reinterpret_cast<f32*>(smem),
      [&](i64 row, i64 column, i64 end, f32(&a)[kUnit], f32(&sums)[kUnit]) {
        rows::load_unit<T, kUnit, kVector>(static_cast<const T*>(p.a) + row * p.a_stride, column, end, a);
        rows::load_unit<f32, kUnit, kVector>(reinterpret_cast<const f32*>(p.column_sums), column, end, sums);
      },
      [&](i64 row, i64 chunk, f32 dot) {
        f32 sum[1] = {dot};
        if constexpr (C.with_bias != 0) {
          if (chunk == 0) sum[0] = dot + ptx::ld_global<f32>(p.bias_sum);
        }
        store_f32<Out, 1>(static_cast<Out*>(p.out) + chunk * p.part_stride + row, sum);
      },
      [](i64, i64, f32, const f32(&)[kUnit], const f32(&)[kUnit]) {});
}

}  // namespace quern::gemm
