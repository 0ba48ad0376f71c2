// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// rope_out = fp8(rope(x) * (1 / scale)), nope_out = fp8(nope * (1 / scale)) of each head of q and k
// A head, both parts of it, belongs to C.head.lanes neighbouring lanes, which take a part of a token's heads at a time, as in rotate_heads.
#pragma once
#include "quern/kit/fp8_scale.cuh"
#include "quern/kit/kit.cuh"
#include "quern/ops/rope/rope_quantise_fp8/spec.h"
#include "quern/ops/rope/rotate/angles.cuh"
#include "quern/ops/rope/rotate/head.cuh"

namespace quern::rope {

template <RopeQuantiseFp8Config C> using WideAccess = Packed<dtype_t<C.head.dtype>, C.head.vector>;

template <RopeQuantiseFp8Config C> QN_DEVICE void store_quantised(dtype_t<C.out_dtype>* to, f32 (&x)[C.head.vector], f32 inverse) {
  QN_UNROLL
  for (int j = 0; j < C.head.vector; ++j) x[j] = x[j] * inverse;
  store_f32<dtype_t<C.out_dtype>, C.head.vector>(to, x);
}
template <RopeQuantiseFp8Config C> QN_DEVICE void store_quantised(dtype_t<C.out_dtype>* to, const WideAccess<C>& access, f32 inverse) {
  f32 x[C.head.vector];
  unpack(access, x);
  store_quantised<C>(to, x, inverse);
}

/// The lane's units of the part that is not rotated.
template <RopeQuantiseFp8Config C> QN_DEVICE void quantise_nope(const QuantisedHeads& heads, i64 token, int head, int lane, f32 inverse) {
  using T = dtype_t<C.head.dtype>;
  constexpr int kUnit = kLanePairs<C.head>;
  const T* const from = static_cast<const T*>(heads.nope) + token * heads.nope_token_stride + head * heads.nope_head_stride;
  dtype_t<C.out_dtype>* const to =
      static_cast<dtype_t<C.out_dtype>*>(heads.nope_out) + token * heads.nope_out_token_stride + head * heads.nope_out_head_stride;
  for (i64 first = lane * kUnit; first < heads.nope_dim; first += C.head.lanes * kUnit) {
    WideAccess<C> unit[kUnit / C.head.vector];
    QN_UNROLL
    for (int a = 0; a < kUnit / C.head.vector; ++a)
      if (first + a * C.head.vector < heads.nope_dim) unit[a] = load_packed<T, C.head.vector>(from + first + a * C.head.vector);
    QN_UNROLL
    for (int a = 0; a < kUnit / C.head.vector; ++a)
      if (first + a * C.head.vector < heads.nope_dim) store_quantised<C>(to + first + a * C.head.vector, unit[a], inverse);
  }
}

template <RopeQuantiseFp8Config C>
QN_DEVICE void quantise_head(const RopeQuantiseFp8Params& p, const QuantisedHeads& heads, i64 token, int head, int lane,
                             const HeldHead<C.head>& held, const Rotations<kLanePairs<C.head>>& rotations) {
  using T = dtype_t<C.head.dtype>;
  constexpr int kVector = C.head.vector;
  const int half = p.angles.half;
  const f32 inverse = heads.scale == nullptr ? f32(1.f) : fp8_inverse(ptx::ld_global<f32>(heads.scale));
  dtype_t<C.out_dtype>* const to =
      static_cast<dtype_t<C.out_dtype>*>(heads.rope_out) + token * heads.out_token_stride + head * heads.out_head_stride;
  f32 v[2 * kLanePairs<C.head>];
  unpack_head<C.head>(held, half, lane, v);
  rotate<C.head>(rotations, v);
  QN_UNROLL
  for (int a = 0; a < 2 * kLanePairs<C.head>; a += kVector) {
    f32 part[kVector];
    QN_UNROLL
    for (int j = 0; j < kVector; ++j) part[j] = v[a + j];
    if (has_element<C.head>(half, lane, a)) store_quantised<C>(to + element_of<C.head>(half, lane, a), part, inverse);
  }
  const T* const from = static_cast<const T*>(heads.rope) + token * heads.token_stride + head * heads.head_stride;
  each_rest<C.head>(from, half, p.head_dim, lane, held,
                    [&](int element, const WideAccess<C>& access) { store_quantised<C>(to + element, access, inverse); });
  if constexpr (C.nope != 0)
    if (heads.nope != nullptr) quantise_nope<C>(heads, token, head, lane, inverse);
}

template <RopeQuantiseFp8Config C> QN_DEVICE void rope_quantise_fp8_heads(const RopeQuantiseFp8Params& p) {
  using T = dtype_t<C.head.dtype>;
  constexpr int kSlots = C.threads / C.head.lanes, kPairs = kLanePairs<C.head>;
  QN_SMEM(smem);
  f32* turns_smem = reinterpret_cast<f32*>(smem);
  const int lane = int(threadIdx.x) % C.head.lanes, first = lane * kPairs, heads = p.heads_q + p.heads_kv;
  ptx::grid_launch_dependents();
  stage_turns<C.angles, C.threads>(p.angles, turns_smem);
  ptx::grid_dependency_wait();
  Turns<kPairs> turns;
  load_turns<C.angles, kPairs>(p.angles, turns_smem, first, turns);
  const i64 begin = i64(blockIdx.x) * kSlots + threadIdx.x / C.head.lanes, step = i64(gridDim.x) * kSlots, step_tokens = step / p.parts;
  const int step_parts = int(step - step_tokens * p.parts);
  i64 token = begin / p.parts;
  int part = int(begin - token * p.parts);
  while (token < p.tokens) {
    HeldHead<C.head> held[C.in_flight];
    QN_UNROLL
    for (int h = 0; h < C.in_flight; ++h) {
      const int head = part + h * p.parts;
      if (head >= heads) continue;
      const T* const from = head < p.heads_q
                                ? static_cast<const T*>(p.q.rope) + token * p.q.token_stride + head * p.q.head_stride
                                : static_cast<const T*>(p.k.rope) + token * p.k.token_stride + (head - p.heads_q) * p.k.head_stride;
      load_head<C.head>(from, p.angles.half, p.head_dim, lane, true, held[h]);
    }
    Rotations<kPairs> rotations;
    rotations_of<C.angles, kPairs>(p.angles, position_of<C.angles>(p.angles, token), first, turns, rotations);
    QN_UNROLL
    for (int h = 0; h < C.in_flight; ++h) {
      const int head = part + h * p.parts;
      if (head < p.heads_q) quantise_head<C>(p, p.q, token, head, lane, held[h], rotations);
      else if (head < heads) quantise_head<C>(p, p.k, token, head - p.heads_q, lane, held[h], rotations);
    }
    token += step_tokens, part += step_parts;
    if (part >= p.parts) part -= p.parts, ++token;
  }
}

}  // namespace quern::rope
