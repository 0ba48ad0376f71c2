// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Ends of rows: the bias and the rounded result.
#pragma once
#include "quern/kit/kit.cuh"

namespace quern::gemm {

/// bias[column] for N columns from `column`; zeros past `columns` and without a bias.
template <int N> QN_DEVICE void load_bias(const void* bias, DType dtype, i64 column, i64 columns, f32 (&values)[N]) {
  QN_UNROLL
  for (int i = 0; i < N; ++i) {
    values[i] = 0.f;
    if (bias == nullptr || column + i >= columns) continue;
    if (dtype == DType::f32) {
      values[i] = ptx::ld_global_nc<f32>(static_cast<const f32*>(bias) + column + i);
    } else {
      const u16 bits = ptx::ld_global_nc<u16>(static_cast<const u16*>(bias) + column + i);
      values[i] = dtype == DType::bf16 ? to_f32(bf16{bits}) : to_f32(f16{bits});
    }
  }
}

template <class T> struct StoredBits { using type = u16; };
template <> struct StoredBits<f32> { using type = f32; };
QN_DEVICE u16 bits_to_store(bf16 x) { return x.bits; }
QN_DEVICE u16 bits_to_store(f16 x) { return x.bits; }
QN_DEVICE f32 bits_to_store(f32 x) { return x; }

/// Rounds N neighbouring results into a row, as wide as `alignment` (bytes, of the row's start) and the row's end allow.
/// `column` is a multiple of N.
template <class T, int N>
QN_DEVICE void store_columns(T* row, i64 column, i64 columns, int alignment, const f32 (&values)[N]) {
  constexpr int kWide = min_of(N, 16 / int(sizeof(T)));
  if (column + N <= columns && alignment >= kWide * int(sizeof(T))) {
    QN_UNROLL
    for (int i = 0; i < N; i += kWide) {
      f32 part[kWide];
      QN_UNROLL
      for (int j = 0; j < kWide; ++j) part[j] = values[i + j];
      store_f32<T, kWide>(row + column + i, part);
    }
  } else {
    QN_UNROLL
    for (int i = 0; i < N; ++i)
      if (column + i < columns)
        ptx::st_global<typename StoredBits<T>::type>(row + column + i, bits_to_store(from_f32<T>(values[i])));
  }
}

}  // namespace quern::gemm
