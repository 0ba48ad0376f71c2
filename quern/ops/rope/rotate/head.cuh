// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// A head over lanes. Lane l has the kLanePairs pairs from l * kLanePairs on, in accesses of at most 16 bytes, and of what lies behind
// rotary_dim the units of kLanePairs elements l, l + lanes, .., of which it holds the first.
#pragma once
#include "quern/kit/kit.cuh"
#include "quern/ops/rope/rotate/angles.cuh"

namespace quern::rope {

/// Pairs of a lane: both halves of them are 16 bytes.
template <HeadConfig C> constexpr int kLanePairs = 16 / size_of(C.dtype);

/// What a lane holds of a head between its loads and its stores.
template <HeadConfig C> struct HeldHead {
  using T = dtype_t<C.dtype>;
  Packed<T, C.vector> pairs[2 * kLanePairs<C> / C.vector];
  Packed<T, C.vector> rest[C.rest != 0 ? kLanePairs<C> / C.vector : 1];
};

/// Element of the lane's value `at`: a multiple of the access.
template <HeadConfig C> QN_DEVICE int element_of(int half, int lane, int at) {
  constexpr int kN = kLanePairs<C>;
  if constexpr (C.interleaved != 0) return 2 * kN * lane + at;
  else return at < kN ? kN * lane + at : half + kN * lane + at - kN;
}
/// Whether the head has it.
template <HeadConfig C> QN_DEVICE bool has_element(int half, int lane, int at) {
  constexpr int kN = kLanePairs<C>;
  if constexpr (C.interleaved != 0) return 2 * kN * lane + at < 2 * half;
  else return kN * lane + at % kN < half;
}

/// Calls f(first element, access) for each access of the unit of the rest.
template <HeadConfig C, class F> QN_DEVICE void each_rest_access(int half, int head_dim, int unit, const F& f) {
  QN_UNROLL
  for (int a = 0; a < kLanePairs<C> / C.vector; ++a) {
    const int element = 2 * half + unit * kLanePairs<C> + a * C.vector;
    if (element < head_dim) f(element, a);
  }
}

template <HeadConfig C> QN_DEVICE void load_head(const dtype_t<C.dtype>* head, int half, int head_dim, int lane, bool rest,
                                                 HeldHead<C>& held) {
  using T = dtype_t<C.dtype>;
  QN_UNROLL
  for (int a = 0; a < 2 * kLanePairs<C> / C.vector; ++a)
    if (has_element<C>(half, lane, a * C.vector)) held.pairs[a] = load_packed<T, C.vector>(head + element_of<C>(half, lane, a * C.vector));
  if constexpr (C.rest != 0)
    if (rest)
      each_rest_access<C>(half, head_dim, lane, [&](int element, int a) { held.rest[a] = load_packed<T, C.vector>(head + element); });
}

/// The lane's values: of the first elements of its pairs, then of the second ones, or pair after pair. 0 where the head has none.
template <HeadConfig C> QN_DEVICE void unpack_head(const HeldHead<C>& held, int half, int lane, f32 (&v)[2 * kLanePairs<C>]) {
  QN_UNROLL
  for (int a = 0; a < 2 * kLanePairs<C> / C.vector; ++a) {
    f32 part[C.vector];
    const bool has = has_element<C>(half, lane, a * C.vector);
    if (has) unpack(held.pairs[a], part);
    QN_UNROLL
    for (int j = 0; j < C.vector; ++j) v[a * C.vector + j] = has ? part[j] : f32(0.f);
  }
}

/// (a, b) -> (a cos - b sin, b cos + a sin).
template <HeadConfig C> QN_DEVICE void rotate(const Rotations<kLanePairs<C>>& r, f32 (&v)[2 * kLanePairs<C>]) {
  QN_UNROLL
  for (int j = 0; j < kLanePairs<C>; ++j) {
    const int first = C.interleaved != 0 ? 2 * j : j, second = C.interleaved != 0 ? 2 * j + 1 : kLanePairs<C> + j;
    const f32 a = v[first], b = v[second];
    v[first] = ptx::fma(a, r.cosine[j], f32(0.f) - b * r.sine[j]);
    v[second] = ptx::fma(a, r.sine[j], b * r.cosine[j]);
  }
}

/// Rounds and stores the pairs.
template <HeadConfig C, class Out> QN_DEVICE void store_pairs(Out* head, int half, int lane, const f32 (&v)[2 * kLanePairs<C>]) {
  QN_UNROLL
  for (int a = 0; a < 2 * kLanePairs<C> / C.vector; ++a) {
    f32 part[C.vector];
    QN_UNROLL
    for (int j = 0; j < C.vector; ++j) part[j] = v[a * C.vector + j];
    if (has_element<C>(half, lane, a * C.vector)) store_f32<Out, C.vector>(head + element_of<C>(half, lane, a * C.vector), part);
  }
}

/// Calls f(first element, access) for each access of the lane to what lies behind rotary_dim: the unit that it holds, then those that it
/// reads now.
template <HeadConfig C, class F> QN_DEVICE void each_rest(const dtype_t<C.dtype>* from, int half, int head_dim, int lane,
                                                          const HeldHead<C>& held, const F& f) {
  if constexpr (C.rest != 0) {
    each_rest_access<C>(half, head_dim, lane, [&](int element, int a) { f(element, held.rest[a]); });
    for (int unit = lane + C.lanes; 2 * half + unit * kLanePairs<C> < head_dim; unit += C.lanes)
      each_rest_access<C>(half, head_dim, unit,
                          [&](int element, int) { f(element, load_packed<dtype_t<C.dtype>, C.vector>(from + element)); });
  }
}

}  // namespace quern::rope
