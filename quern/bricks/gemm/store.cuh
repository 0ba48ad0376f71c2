// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Ends of rows: the bias, c, the activation and the rounded result.
#pragma once
#include "quern/bricks/gemm/ending_spec.h"
#include "quern/kit/activation.cuh"
#include "quern/kit/kit.cuh"

namespace quern::gemm {

/// N neighbouring elements, one by one; zeros past the first `count` of them.
template <class E, int N>
QN_DEVICE void load_single(const E* from, int count, f32 (&values)[N]) {
  QN_UNROLL
  for (int i = 0; i < N; ++i) {
    f32 value[1] = {0.f};
    if (i < count) load_f32<E, 1, Cache::read_only>(from + i, value);
    values[i] = value[0];
  }
}

/// N neighbouring values of the bias, of f32 or T, from `column`; zeros past the first `columns` of them and without a bias.
template <class T, int N>
QN_DEVICE void load_bias(const void* bias, DType dtype, i64 column, int columns, f32 (&values)[N]) {
  QN_UNROLL
  for (int i = 0; i < N; ++i) values[i] = 0.f;
  if (bias == nullptr) return;
  if (dtype == DType::f32) load_single(static_cast<const f32*>(bias) + column, columns, values);
  else load_single(static_cast<const T*>(bias) + column, columns, values);
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
constexpr int kWidestBytes = kWidest<T, N> * int(sizeof(T));

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

/// sums += N neighbouring elements of c, in memory aligned for the widest access. It may be out: no read-only loads.
template <class E, int N>
QN_DEVICE void add_aligned(const E* from, f32 (&sums)[N]) {
  constexpr int kWide = kWidest<E, N>;
  QN_UNROLL
  for (int i = 0; i < N; i += kWide) {
    f32 part[kWide];
    load_f32<E, kWide>(from + i, part);
    QN_UNROLL
    for (int j = 0; j < kWide; ++j) sums[i + j] = sums[i + j] + part[j];
  }
}

/// sums += c[row, column ..].
template <class T, int N>
QN_DEVICE void add_c(const DenseAddend& c, i64 row, i64 column, f32 (&sums)[N]) {
  const i64 at = row * c.stride + column;
  if (c.dtype == DType::f32) add_aligned(static_cast<const f32*>(c.data) + at, sums);
  else add_aligned(static_cast<const T*>(c.data) + at, sums);
}

template <i32 kActivation, int N>
QN_DEVICE void activate(f32 (&values)[N]) {
  QN_UNROLL
  for (int i = 0; i < N; ++i) values[i] = activated<Activation(kActivation)>(values[i]);
}

/// Whether every row of c is aligned for the widest access to N neighbouring elements.
template <class T, int N>
QN_DEVICE bool is_wide(const DenseAddend& c) {
  return c.alignment >= (c.dtype == DType::f32 ? kWidestBytes<f32, N> : kWidestBytes<T, N>);
}

}  // namespace quern::gemm
