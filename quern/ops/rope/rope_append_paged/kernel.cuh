// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// q_out = rope(norm(q)); k_cache[place] = rope(norm(k)); v_cache[place] = v, of each token
// Heads of q, k and v are one list. A head belongs to C.head.lanes neighbouring lanes, which take a part of a token's list at a time, as in
// rotate_heads.
#pragma once
#include "quern/bricks/paged/place.cuh"
#include "quern/kit/kit.cuh"
#include "quern/ops/rope/rope_append_paged/spec.h"
#include "quern/ops/rope/rotate/angles.cuh"
#include "quern/ops/rope/rotate/head.cuh"

namespace quern::rope {

template <RopeAppendPagedConfig C> using QkvElement = dtype_t<C.head.dtype>;
template <RopeAppendPagedConfig C> using CacheElement = dtype_t<C.cache_dtype>;
template <RopeAppendPagedConfig C> using Access = Packed<QkvElement<C>, C.head.vector>;

/// Which list a head is of, and its number there.
struct HeadPlace {
  bool is_q, is_v;
  int number;
};
QN_DEVICE HeadPlace head_place(const RopeAppendPagedParams& p, int head) {
  if (head < p.heads_q) return {true, false, head};
  return head < p.heads_q + p.heads_kv ? HeadPlace{false, false, head - p.heads_q} : HeadPlace{false, true, head - p.heads_q - p.heads_kv};
}

template <RopeAppendPagedConfig C> QN_DEVICE const QkvElement<C>* head_from(const RopeAppendPagedParams& p, i64 token,
                                                                            const HeadPlace& at) {
  using T = QkvElement<C>;
  if (at.is_q) return static_cast<const T*>(p.q) + token * p.q_token_stride + at.number * p.q_head_stride;
  return at.is_v ? static_cast<const T*>(p.v) + token * p.v_token_stride + at.number * p.v_head_stride
                 : static_cast<const T*>(p.k) + token * p.k_token_stride + at.number * p.k_head_stride;
}

/// The head's row of its cache.
template <RopeAppendPagedConfig C> QN_DEVICE CacheElement<C>* cache_row(const RopeAppendPagedParams& p, const paged::Place& place,
                                                                        const HeadPlace& at) {
  using S = CacheElement<C>;
  return at.is_v ? static_cast<S*>(p.v_cache) + place.page * p.v_page_stride + place.offset * p.v_slot_stride +
                       at.number * p.v_cache_head_stride
                 : static_cast<S*>(p.k_cache) + place.page * p.k_page_stride + place.offset * p.k_slot_stride +
                       at.number * p.k_cache_head_stride;
}

/// What elements of a head are divided by; only FP8 caches have scales.
template <RopeAppendPagedConfig C> QN_DEVICE f32 cache_scale(const RopeAppendPagedParams& p, const HeadPlace& at) {
  const float* scales = at.is_v ? p.v_scale : p.k_scale;
  if (C.cache_dtype == C.head.dtype || scales == nullptr) return f32(1.f);
  return ptx::ld_global<f32>(scales + at.number * (at.is_v ? p.v_scale_stride : p.k_scale_stride));
}

/// An access of a row of the cache: the same bits, or x / scale in FP8. A division by 1 changes no bit.
template <RopeAppendPagedConfig C> QN_DEVICE void store_cached(CacheElement<C>* to, const Access<C>& access, f32 scale) {
  if constexpr (C.cache_dtype == C.head.dtype) {
    store_packed(to, access);
  } else {
    f32 x[C.head.vector];
    unpack(access, x);
    QN_UNROLL
    for (int j = 0; j < C.head.vector; ++j) x[j] = ptx::div(x[j], scale);
    store_f32<CacheElement<C>, C.head.vector>(to, x);
  }
}

/// The lane's part of a head of v as it is.
template <RopeAppendPagedConfig C>
QN_DEVICE void append_as_it_is(const RopeAppendPagedParams& p, const QkvElement<C>* from, CacheElement<C>* to, int lane,
                               const HeldHead<C.head>& held, f32 scale) {
  const int half = p.angles.half;
  QN_UNROLL
  for (int a = 0; a < 2 * kLanePairs<C.head> / C.head.vector; ++a)
    if (has_element<C.head>(half, lane, a * C.head.vector))
      store_cached<C>(to + element_of<C.head>(half, lane, a * C.head.vector), held.pairs[a], scale);
  each_rest<C.head>(from, half, p.head_dim, lane, held,
                    [&](int element, const Access<C>& access) { store_cached<C>(to + element, access, scale); });
}

/// The lane's sum of squares of a head: of its pairs in the order of its values, then of the rest.
template <RopeAppendPagedConfig C>
QN_DEVICE f32 squares_of(const RopeAppendPagedParams& p, const QkvElement<C>* from, int lane, const HeldHead<C.head>& held,
                         const f32 (&v)[2 * kLanePairs<C.head>]) {
  f32 squares = 0.f;
  QN_UNROLL
  for (int j = 0; j < 2 * kLanePairs<C.head>; ++j) squares = ptx::fma(v[j], v[j], squares);
  each_rest<C.head>(from, p.angles.half, p.head_dim, lane, held, [&](int, const Access<C>& access) {
    f32 x[C.head.vector];
    unpack(access, x);
    QN_UNROLL
    for (int j = 0; j < C.head.vector; ++j) squares = ptx::fma(x[j], x[j], squares);
  });
  return squares;
}

/// x * r * (weight + weight_bias) of an access that begins at an element of the head.
template <RopeAppendPagedConfig C> QN_DEVICE void normalise(const RopeAppendPagedParams& p, const void* weights, int element, f32 r,
                                                            f32* x) {
  using W = dtype_t<C.weight_dtype>;
  constexpr int kStep = min_of(C.head.vector, 16 / int(sizeof(W)));
  QN_UNROLL
  for (int a = 0; a < C.head.vector; a += kStep) {
    f32 weight[kStep];
    load_f32<W, kStep>(static_cast<const W*>(weights) + element + a, weight);
    QN_UNROLL
    for (int j = 0; j < kStep; ++j) x[a + j] = x[a + j] * r * (weight[j] + f32(p.weight_bias));
  }
}

/// The lane's part of a head of q or k from its normalised pairs on: rotates, rounds and stores them, and what lies behind rotary_dim. r:
/// of the norm.
template <RopeAppendPagedConfig C, class Store>
QN_DEVICE void finish_head(const RopeAppendPagedParams& p, const QkvElement<C>* from, const void* weights, f32 r, int lane,
                           const HeldHead<C.head>& held, const Rotations<kLanePairs<C.head>>& rotations, f32 (&v)[2 * kLanePairs<C.head>],
                           bool rest, const Store& store) {
  constexpr int kVector = C.head.vector;
  using T = QkvElement<C>;
  const int half = p.angles.half;
  if constexpr (C.norm != 0)
    if (weights != nullptr) {
      QN_UNROLL
      for (int a = 0; a < 2 * kLanePairs<C.head>; a += kVector)
        if (has_element<C.head>(half, lane, a)) normalise<C>(p, weights, element_of<C.head>(half, lane, a), r, &v[a]);
    }
  rotate<C.head>(rotations, v);
  QN_UNROLL
  for (int a = 0; a < 2 * kLanePairs<C.head>; a += kVector) {
    f32 part[kVector];
    QN_UNROLL
    for (int j = 0; j < kVector; ++j) part[j] = v[a + j];
    if (has_element<C.head>(half, lane, a)) store(element_of<C.head>(half, lane, a), pack<T, kVector>(part));
  }
  if (!rest) return;
  each_rest<C.head>(from, half, p.head_dim, lane, held, [&](int element, const Access<C>& access) {
    if constexpr (C.norm != 0)
      if (weights != nullptr) {
        f32 x[kVector];
        unpack(access, x);
        normalise<C>(p, weights, element, r, x);
        store(element, pack<T, kVector>(x));
        return;
      }
    store(element, access);
  });
}

/// A head of a part, all lanes of a warp together. `mine`: the lane has one.
template <RopeAppendPagedConfig C>
QN_DEVICE void append_head(const RopeAppendPagedParams& p, i64 token, int head, bool mine, const paged::Place& place, int lane,
                           const HeldHead<C.head>& held, const Rotations<kLanePairs<C.head>>& rotations) {
  using T = QkvElement<C>;
  const HeadPlace at = head_place(p, head);
  const T* const from = head_from<C>(p, token, at);
  const void* const weights = at.is_q ? p.q_weight : at.is_v ? nullptr : p.k_weight;
  f32 v[2 * kLanePairs<C.head>], r = 1.f;
  if (mine) unpack_head<C.head>(held, p.angles.half, lane, v);
  if constexpr (C.norm != 0) {
    const f32 squares = mine && weights != nullptr ? squares_of<C>(p, from, lane, held, v) : f32(0.f);
    r = ptx::rsqrt_approx(ptx::div(warp_sum<C.head.lanes>(squares), f32(float(p.head_dim))) + f32(p.eps));
  }
  if (!mine) return;
  if (at.is_q) {
    T* const to = static_cast<T*>(p.q_out) + token * p.q_out_token_stride + at.number * p.q_out_head_stride;
    finish_head<C>(p, from, weights, r, lane, held, rotations, v, weights != nullptr || from != to,
                   [&](int element, const Access<C>& access) { store_packed(to + element, access); });
  } else if (place.page >= 0) {
    CacheElement<C>* const to = cache_row<C>(p, place, at);
    const f32 scale = cache_scale<C>(p, at);
    if (at.is_v) append_as_it_is<C>(p, from, to, lane, held, scale);
    else
      finish_head<C>(p, from, weights, r, lane, held, rotations, v, true,
                     [&](int element, const Access<C>& access) { store_cached<C>(to + element, access, scale); });
  }
}

template <RopeAppendPagedConfig C> QN_DEVICE void rope_append_paged_heads(const RopeAppendPagedParams& p) {
  constexpr int kSlots = C.threads / C.head.lanes, kPairs = kLanePairs<C.head>;
  QN_SMEM(smem);
  f32* turns_smem = reinterpret_cast<f32*>(smem);
  const int lane = int(threadIdx.x) % C.head.lanes, slot = int(threadIdx.x) / C.head.lanes, first = lane * kPairs;
  const int half = p.angles.half, heads = p.heads_q + 2 * p.heads_kv;
  ptx::grid_launch_dependents();
  stage_turns<C.angles, C.threads>(p.angles, turns_smem);
  ptx::grid_dependency_wait();
  Turns<kPairs> turns;
  load_turns<C.angles, kPairs>(p.angles, turns_smem, first, turns);
  const i64 step = i64(gridDim.x) * kSlots, begin = i64(blockIdx.x) * kSlots + slot, step_tokens = step / p.parts;
  const int step_parts = int(step - step_tokens * p.parts);
  i64 token = begin / p.parts;
  int part = int(begin - token * p.parts);
  // By the block's first part, so that all lanes of a warp meet in the sums of norms
  for (i64 block = i64(blockIdx.x) * kSlots; block < p.tokens * p.parts; block += step) {
    const bool active = token < p.tokens;
    HeldHead<C.head> held[C.in_flight];
    QN_UNROLL
    for (int h = 0; h < C.in_flight; ++h) {
      const int head = part + h * p.parts;
      if (active && head < heads) load_head<C.head>(head_from<C>(p, token, head_place(p, head)), half, p.head_dim, lane, true, held[h]);
    }
    Rotations<kPairs> rotations;
    paged::Place place{-1, 0};
    if (active) {
      rotations_of<C.angles, kPairs>(p.angles, position_of<C.angles>(p.angles, token), first, turns, rotations);
      if (part + (C.in_flight - 1) * p.parts >= p.heads_q) place = paged::place_of<C.places, C.place_dtype>(p.place, token);
    }
    QN_UNROLL
    for (int h = 0; h < C.in_flight; ++h) {
      const int head = part + h * p.parts;
      append_head<C>(p, token, head, active && head < heads, place, lane, held[h], rotations);
    }
    token += step_tokens, part += step_parts;
    if (part >= p.parts) part -= p.parts, ++token;
  }
}

}  // namespace quern::rope
