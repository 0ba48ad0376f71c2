// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// (a, b) -> (a cos - b sin, b cos + a sin) for each pair of q and k, angle = position * f_i
// A block takes a token at a time. It makes the token's sines and cosines once, in shared memory, for all heads (indexing
// the table in Params by lane would serialise the constant cache); its threads then take items of C.pairs pairs, q before k.
#pragma once
#include "quern/kit/kit.cuh"
#include "quern/ops/rope/rope_inplace/spec.h"

namespace quern::rope {

/// Sine and cosine of position * f_i. The product is formed in turns with its rounding error, so that only the fraction of a
/// turn, at most a half, reaches the approximate sine. Each fma is written: the compiler would fuse products as it likes, one way in one
/// kernel and another way in that of another alignment, and a row alone has another alignment than in its batch.
QN_DEVICE void rotation(f32 position, f32 turns_high, f32 turns_low, f32& sine, f32& cosine) {
  const f32 product = position * turns_high;
  const f32 error = ptx::fma(position, turns_low, ptx::fma(position, turns_high, f32(0.f) - product));
  const f32 rest = (product - ptx::round(product)) + error;  // a product above 2^22 is off by more than a quarter of a turn
  const f32 fraction = rest - ptx::round(rest);
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

/// C.pairs pairs of one head.
template <RopeInplaceConfig C> struct Item {
  f32 a[C.pairs], b[C.pairs];
};

template <RopeInplaceConfig C>
QN_DEVICE void load_item(const dtype_t<C.dtype>* head, int half, int first, Item<C>& item) {
  using T = dtype_t<C.dtype>;
  constexpr int N = C.pairs;
  if constexpr (C.interleaved != 0) {
    f32 both[2 * N];
    load_elements<T, 2 * N>(head + 2 * first, C.aligned != 0, both);
    QN_UNROLL
    for (int j = 0; j < N; ++j) item.a[j] = both[2 * j], item.b[j] = both[2 * j + 1];
  } else {
    load_elements<T, N>(head + first, C.aligned != 0, item.a);
    load_elements<T, N>(head + half + first, C.aligned != 0, item.b);
  }
}

template <RopeInplaceConfig C>
QN_DEVICE void store_item(dtype_t<C.dtype>* head, int half, int first, const Item<C>& item) {
  using T = dtype_t<C.dtype>;
  constexpr int N = C.pairs;
  if constexpr (C.interleaved != 0) {
    f32 both[2 * N];
    QN_UNROLL
    for (int j = 0; j < N; ++j) both[2 * j] = item.a[j], both[2 * j + 1] = item.b[j];
    store_elements<T, 2 * N>(head + 2 * first, C.aligned != 0, both);
  } else {
    store_elements<T, N>(head + first, C.aligned != 0, item.a);
    store_elements<T, N>(head + half + first, C.aligned != 0, item.b);
  }
}

template <RopeInplaceConfig C>
QN_DEVICE void rotate_item(const f32* sines, const f32* cosines, int first, Item<C>& item) {
  QN_UNROLL
  for (int j = 0; j < C.pairs; ++j) {
    const f32 sine = sines[first + j], cosine = cosines[first + j];
    const f32 a = ptx::fma(item.a[j], cosine, f32(0.f) - item.b[j] * sine);
    item.b[j] = ptx::fma(item.a[j], sine, item.b[j] * cosine);
    item.a[j] = a;
  }
}

template <RopeInplaceConfig C> QN_DEVICE void rope_inplace_token(const RopeInplaceParams& p) {
  using T = dtype_t<C.dtype>;
  QN_SMEM(smem);
  f32* sines = reinterpret_cast<f32*>(smem);
  f32* cosines = sines + kMaxPairs;
  const int per_head = p.half / C.pairs;
  const int items = (p.heads_q + p.heads_kv) * per_head;
  ptx::grid_launch_dependents();
  // The position may be what a kernel before writes, so before the wait it is only fetched into the L2
  if (threadIdx.x == 0) ptx::prefetch_l2(p.positions + blockIdx.x);
  ptx::grid_dependency_wait();
  for (i64 token = blockIdx.x; token < p.tokens; token += gridDim.x) {
    const auto head_of = [&](int at) {
      const int head = at / per_head;
      return head < p.heads_q ? static_cast<T*>(p.q) + token * p.q_token_stride + head * p.q_head_stride
                              : static_cast<T*>(p.k) + token * p.k_token_stride + (head - p.heads_q) * p.k_head_stride;
    };
    const auto first_of = [&](int at) { return at % per_head * C.pairs; };
    // The first item is on its way while the angles are made
    Item<C> item;
    int at = threadIdx.x;
    if (at < items) load_item<C>(head_of(at), p.half, first_of(at), item);
    const f32 position = f32(float(ptx::ld_global<i32>(p.positions + token)));
    for (int i = threadIdx.x; i < p.half; i += C.threads)
      rotation(position, p.turns_high[i], p.turns_low[i], sines[i], cosines[i]);
    ptx::sync_block();
    for (; at < items; at += C.threads) {
      if (at >= C.threads) load_item<C>(head_of(at), p.half, first_of(at), item);
      rotate_item<C>(sines, cosines, first_of(at), item);
      store_item<C>(head_of(at), p.half, first_of(at), item);
    }
    ptx::sync_block();  // the next token's angles overwrite these
  }
}

}  // namespace quern::rope
