// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Ends of rows: the bias and the rounded result.
#pragma once
#include "quern/kit/kit.cuh"

namespace quern::gemm {

/// N neighbouring values of the bias from `column`; zeros past the first `columns` of them and without a bias.
template <int N>
QN_DEVICE void load_bias(const void* bias, DType dtype, i64 column, int columns, f32 (&values)[N]) {
  QN_UNROLL
  for (int i = 0; i < N; ++i) values[i] = 0.f;
  if (bias == nullptr) return;
  if (dtype == DType::f32) {
    QN_UNROLL
    for (int i = 0; i < N; ++i)
      if (i < columns) values[i] = ptx::ld_global_nc<f32>(static_cast<const f32*>(bias) + column + i);
  } else {
    QN_UNROLL
    for (int i = 0; i < N; ++i) {
      u16 bits = 0;
      if (i < columns) bits = ptx::ld_global_nc<u16>(static_cast<const u16*>(bias) + column + i);
      values[i] = dtype == DType::bf16 ? to_f32(bf16{bits}) : to_f32(f16{bits});
    }
  }
}

template <class T>
struct StoredBits {
  using type = u16;
};
template <>
struct StoredBits<f32> {
  using type = f32;
};
QN_DEVICE u16 bits_to_store(bf16 x) { return x.bits; }
QN_DEVICE u16 bits_to_store(f16 x) { return x.bits; }
QN_DEVICE f32 bits_to_store(f32 x) { return x; }

/// Elements and bytes of the widest access to N neighbouring results.
template <class T, int N>
constexpr int kWidest = min_of(N, 16 / int(sizeof(T)));
template <class T, int N>
constexpr int kWidestBytes = kWidest<T, N>* int(sizeof(T));

template <class T>
QN_DEVICE void store_one(T* to, f32 value) {
  ptx::st_global<typename StoredBits<T>::type>(to, bits_to_store(from_f32<T>(value)));
}

/// Rounds N neighbouring results into memory aligned for the widest access.
template <class T, int N>
QN_DEVICE void store_aligned(T* to, const f32 (&values)[N]) {
  constexpr int kWide = kWidest<T, N>;
  QN_UNROLL
  for (int i = 0; i < N; i += kWide) {
    f32 part[kWide];
    QN_UNROLL
    for (int j = 0; j < kWide; ++j) part[j] = values[i + j];
    store_f32<T, kWide>(to + i, part);
  }
}

}  // namespace quern::gemm
