// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, x] = scale[i] * values[x], values[x] or values[0]
// A block takes a chunk of one row, then the next chunk a grid further: each_chunk. values come from the L2.
#pragma once
#include "quern/bricks/rows/chunks.cuh"
#include "quern/bricks/rows/whole.cuh"
#include "quern/ops/gemm/linear_rowsum_backward/spec.h"

namespace quern::gemm {

template <LinearRowsumOuterConfig C> struct OuterValues {
  f32 v[C.chunks.vector];
};

template <LinearRowsumOuterConfig C> QN_DEVICE void linear_rowsum_outer(const LinearRowsumOuterParams& p) {
  using Out = dtype_t<C.dtype>;
  using Scale = dtype_t<C.scale_dtype>;
  constexpr int kVector = C.chunks.vector;
  const f32* const values = reinterpret_cast<const f32*>(p.values);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  f32 scale[1] = {f32(1.f)};
  rows::each_chunk<OuterValues<C>, C.chunks, C.threads>(
      p.rows, p.columns,
      [&](i64 row, i64) {
        if constexpr (C.outer == Outer::scaled) load_f32<Scale, 1>(static_cast<const Scale*>(p.scale) + row * p.scale_stride, scale);
      },
      [&](i64, i64 column, OuterValues<C>& held) {
        if constexpr (C.outer != Outer::filled) {
          rows::load_unit<f32, kVector, kVector>(values, column, p.columns, held.v);
        } else {
          const f32 all = ptx::ld_global<f32>(values);
          QN_UNROLL
          for (int j = 0; j < kVector; ++j) held.v[j] = all;
        }
      },
      [&](i64 row, i64 column, const OuterValues<C>& held) {
        f32 v[kVector];
        QN_UNROLL
        for (int j = 0; j < kVector; ++j) v[j] = C.outer == Outer::scaled ? scale[0] * held.v[j] : held.v[j];
        store_f32<Out, kVector>(static_cast<Out*>(p.out) + row * p.out_stride + column, v);
      });
}

}  // namespace quern::gemm
