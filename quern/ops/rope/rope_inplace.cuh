// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// (a, b) -> (a cos - b sin, b cos + a sin) for each pair of q and k, angle = position * f_i
// A block takes a token at a time; its threads walk over the token's heads, q before k, C.pairs pairs each.
#pragma once
#include "quern/kit/kit.cuh"
#include "quern/ops/rope/rope_inplace_spec.h"

namespace quern::rope {

/// Sine and cosine of position * f_i. The product is formed in turns with its rounding error, so that only the fraction of a
/// turn, at most a half, reaches the approximate sine.
QN_DEVICE void rotation(f32 position, f32 turns_high, f32 turns_low, f32& sine, f32& cosine) {
  const f32 product = position * turns_high;
  const f32 error = ptx::fma(position, turns_high, f32(0.f) - product) + position * turns_low;
  const f32 fraction = (product - ptx::round(product)) + error;
  const f32 angle = fraction * f32(6.283185307179586f);
  sine = ptx::sin_approx(angle);
  cosine = ptx::cos_approx(angle);
}

template <class T, int N> QN_DEVICE void load_elements(const T* from, bool aligned, f32 (&v)[N]) {
  if (aligned) {
    load_f32<T, N>(from, v);
  } else {
    QN_UNROLL
    for (int j = 0; j < N; ++j) v[j] = to_f32(ptx::ld_global<T>(from + j));
  }
}
template <class T, int N> QN_DEVICE void store_elements(T* to, bool aligned, const f32 (&v)[N]) {
  if (aligned) {
    store_f32<T, N>(to, v);
  } else {
    QN_UNROLL
    for (int j = 0; j < N; ++j) ptx::st_global<T>(to + j, from_f32<T>(v[j]));
  }
}

/// Rotates pairs [first, first + C.pairs) of one head.
template <RopeInplaceConfig C>
QN_DEVICE void rotate_pairs(const RopeInplaceParams& p, dtype_t<C.dtype>* head, int first, f32 position) {
  using T = dtype_t<C.dtype>;
  constexpr int N = C.pairs;
  constexpr bool kAligned = C.aligned != 0;
  f32 a[N], b[N];
  f32 both[2 * N];
  if constexpr (C.interleaved != 0) {
    load_elements<T, 2 * N>(head + 2 * first, kAligned, both);
    QN_UNROLL
    for (int j = 0; j < N; ++j) a[j] = both[2 * j], b[j] = both[2 * j + 1];
  } else {
    load_elements<T, N>(head + first, kAligned, a);
    load_elements<T, N>(head + p.half + first, kAligned, b);
  }
  QN_UNROLL
  for (int j = 0; j < N; ++j) {
    f32 sine, cosine;
    rotation(position, p.turns_high[first + j], p.turns_low[first + j], sine, cosine);
    const f32 rotated_a = a[j] * cosine - b[j] * sine;
    const f32 rotated_b = b[j] * cosine + a[j] * sine;
    a[j] = rotated_a, b[j] = rotated_b;
  }
  if constexpr (C.interleaved != 0) {
    QN_UNROLL
    for (int j = 0; j < N; ++j) both[2 * j] = a[j], both[2 * j + 1] = b[j];
    store_elements<T, 2 * N>(head + 2 * first, kAligned, both);
  } else {
    store_elements<T, N>(head + first, kAligned, a);
    store_elements<T, N>(head + p.half + first, kAligned, b);
  }
}

template <RopeInplaceConfig C> QN_DEVICE void rope_inplace_token(const RopeInplaceParams& p) {
  using T = dtype_t<C.dtype>;
  const int per_head = p.half / C.pairs;
  const int work = (p.heads_q + p.heads_kv) * per_head;
  ptx::grid_dependency_wait();
  for (i64 token = blockIdx.x; token < p.tokens; token += gridDim.x) {
    const f32 position = f32(float(ptx::ld_global<i32>(p.positions + token)));
    for (int at = threadIdx.x; at < work; at += C.threads) {
      const int head = at / per_head;
      const int first = (at - head * per_head) * C.pairs;
      T* row = head < p.heads_q ? static_cast<T*>(p.q) + token * p.q_token_stride + head * p.q_head_stride
                                : static_cast<T*>(p.k) + token * p.k_token_stride + (head - p.heads_q) * p.k_head_stride;
      rotate_pairs<C>(p, row, first, position);
    }
  }
  ptx::grid_launch_dependents();
}

}  // namespace quern::rope
