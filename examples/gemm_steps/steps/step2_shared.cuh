// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// A block for each tile of out: it copies tiles of a and b to shared memory, where each number is read by many threads.
#pragma once
#include "quern/kit/kit.cuh"
#include "steps/gemm_spec.h"

namespace quern::steps {

/// Rows [first, first + kRows) and columns [k, k + kCols) of a matrix as f32, transposed: threads that have neighbouring rows
/// read neighbouring words. Zeros where the matrix ends.
template <class T, int kRows, int kCols, int kThreads>
QN_DEVICE void copy_transposed(const void* matrix, i64 stride, i64 rows, i64 columns, i64 first, i64 k, f32* tile) {
  for (int e = int(threadIdx.x); e < kRows * kCols; e += kThreads) {
    const int row = e / kCols, column = e % kCols;
    f32 value[1] = {0.f};
    if (first + row < rows && k + column < columns)
      load_f32<T, 1>(static_cast<const T*>(matrix) + (first + row) * stride + k + column, value);
    ptx::st_shared<f32>(tile + column * (kRows + 1) + row, value[0]);
  }
}

template <GemmConfig C>
QN_DEVICE void gemm_shared(const GemmParams& p) {
  using T = dtype_t<C.dtype>;
  constexpr int kAcross = C.tile_n / 4, kEach = C.tile_m / (C.threads / kAcross);  // a thread has kEach rows of 4 columns
  QN_SMEM(smem);
  f32* const a = reinterpret_cast<f32*>(smem);
  f32* const b = a + C.tile_k * (C.tile_m + 1);
  const i64 tiles_n = (p.n + C.tile_n - 1) / C.tile_n;
  const i64 row = i64(blockIdx.x) / tiles_n * C.tile_m, column = i64(blockIdx.x) % tiles_n * C.tile_n;
  const int my_row = int(threadIdx.x) / kAcross, my_column = int(threadIdx.x) % kAcross;
  f32 sums[kEach][4] = {};
  for (i64 k = 0; k < p.k; k += C.tile_k) {
    copy_transposed<T, C.tile_m, C.tile_k, C.threads>(p.a, p.a_stride, p.m, p.k, row, k, a);
    copy_transposed<T, C.tile_n, C.tile_k, C.threads>(p.b, p.b_stride, p.n, p.k, column, k, b);
    ptx::sync_block();
    for (int x = 0; x < C.tile_k; ++x) {
      f32 right[4];
      QN_UNROLL
      for (int j = 0; j < 4; ++j) right[j] = ptx::ld_shared<f32>(b + x * (C.tile_n + 1) + my_column + j * kAcross);
      QN_UNROLL
      for (int i = 0; i < kEach; ++i) {
        const f32 left = ptx::ld_shared<f32>(a + x * (C.tile_m + 1) + my_row * kEach + i);
        QN_UNROLL
        for (int j = 0; j < 4; ++j) sums[i][j] = ptx::fma(left, right[j], sums[i][j]);
      }
    }
    ptx::sync_block();
  }
  QN_UNROLL
  for (int i = 0; i < kEach; ++i) {
    QN_UNROLL
    for (int j = 0; j < 4; ++j) {
      const i64 at = column + my_column + j * kAcross, to = row + my_row * kEach + i;
      const f32 result[1] = {sums[i][j]};
      if (to < p.m && at < p.n) store_f32<T, 1>(static_cast<T*>(p.out) + to * p.out_stride + at, result);
    }
  }
}

}  // namespace quern::steps
