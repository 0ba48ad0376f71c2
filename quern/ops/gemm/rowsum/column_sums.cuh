// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// parts[s, x] = sum of matrix[r, x], or of vector[r] * matrix[r, x], over the rows r of part s; vector_sum = sum of the vector
// A block has 32 accesses side by side of 64 rows: warp w adds rows w, w + 8, ...; then the warps are added in ascending order. The last
// block adds up the vector: a thread every 256th element, then as block_sum.
#pragma once
#include "quern/kit/kit.cuh"
#include "quern/ops/gemm/rowsum/spec.h"

namespace quern::gemm {

template <ColumnSumsConfig C> QN_DEVICE f32 vector_element(const ColumnSumsParams& p, i64 i) {
  using V = dtype_t<C.vector_dtype>;
  f32 v[1];
  load_f32<V, 1>(static_cast<const V*>(p.vector) + i * p.vector_stride, v);
  return v[0];
}

template <ColumnSumsConfig C> QN_DEVICE void sum_vector(const ColumnSumsParams& p, f32* scratch) {
  f32 sum = 0.f;
  for (i64 i = threadIdx.x; i < p.elements; i += C.threads) sum = sum + vector_element<C>(p, i);
  sum = block_sum<C.threads>(sum, scratch);
  if (threadIdx.x == 0) ptx::st_global<f32>(p.vector_sum, sum);
}

template <ColumnSumsConfig C> QN_DEVICE void sum_columns(const ColumnSumsParams& p, f32* sums) {
  using T = dtype_t<C.dtype>;
  constexpr int kWarps = C.threads / 32, kRows = kPartRows / kWarps, kColumns = column_sums_columns(C);
  const i64 across = ceil_div<i64>(p.columns, kColumns), part = i64(blockIdx.x) / across,
            first = (i64(blockIdx.x) - part * across) * kColumns;
  const int warp = int(threadIdx.x) / 32, offset = int(ptx::lane_id()) * C.vector;
  Packed<T, C.vector> rows[kRows];
  f32 weights[kRows], sum[C.vector] = {};
  QN_UNROLL
  for (int i = 0; i < kRows; ++i) {
    const i64 r = part * kPartRows + i * kWarps + warp;
    if (r >= p.rows || first + offset >= p.columns) continue;
    rows[i] = load_packed<T, C.vector>(static_cast<const T*>(p.matrix) + r * p.row_stride + first + offset);
    if constexpr (C.weighted != 0) weights[i] = vector_element<C>(p, r);
  }
  QN_UNROLL
  for (int i = 0; i < kRows; ++i) {
    if (part * kPartRows + i * kWarps + warp >= p.rows || first + offset >= p.columns) continue;
    f32 v[C.vector];
    unpack(rows[i], v);
    QN_UNROLL
    for (int j = 0; j < C.vector; ++j) {
      if constexpr (C.weighted != 0) sum[j] = ptx::fma(weights[i], v[j], sum[j]);
      else sum[j] = sum[j] + v[j];
    }
  }
  QN_UNROLL
  for (int j = 0; j < C.vector; ++j) sums[warp * kColumns + offset + j] = sum[j];
  ptx::sync_block();
  const i64 column = first + int(threadIdx.x);
  if (int(threadIdx.x) < kColumns && column < p.columns) {
    f32 total = sums[threadIdx.x];
    QN_UNROLL
    for (int w = 1; w < kWarps; ++w) total = total + sums[w * kColumns + int(threadIdx.x)];
    ptx::st_global<f32>(static_cast<f32*>(p.parts) + part * p.part_stride + column, total);
  }
}

template <ColumnSumsConfig C> QN_DEVICE void rowsum_column_sums(const ColumnSumsParams& p) {
  static_assert(column_sums_columns(C) <= C.threads, "one thread a column");
  QN_SMEM(smem);
  f32* const sums = reinterpret_cast<f32*>(smem);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  if (i64(blockIdx.x) < p.chunks) sum_columns<C>(p, sums);
  else sum_vector<C>(p, sums);
}

}  // namespace quern::gemm
