// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// (a, b) -> (a cos - b sin, b cos + a sin) for each pair of q and k, angle = position * f_i
// A head belongs to C.head.lanes neighbouring lanes. They take a part of a token's heads at a time: C.in_flight heads, all loaded before
// the first is stored. The part's sines and cosines are made in registers while the heads are on their way; there is no barrier but the one
// behind the turns.
#pragma once
#include "quern/kit/kit.cuh"
#include "quern/ops/rope/rotate/angles.cuh"
#include "quern/ops/rope/rotate/head.cuh"

namespace quern::rope {

template <RotateConfig C> QN_DEVICE void rotate_heads(const RotateParams& p) {
  using T = dtype_t<C.head.dtype>;
  constexpr int kSlots = C.threads / C.head.lanes, kPairs = kLanePairs<C.head>;
  QN_SMEM(smem);
  f32* turns_smem = reinterpret_cast<f32*>(smem);
  const int lane = int(threadIdx.x) % C.head.lanes, first = lane * kPairs, half = p.angles.half, heads = p.heads_q + p.heads_kv;
  ptx::grid_launch_dependents();
  stage_turns<C.angles, C.threads>(p.angles, turns_smem);
  ptx::grid_dependency_wait();
  Turns<kPairs> turns;
  load_turns<C.angles, kPairs>(p.angles, turns_smem, first, turns);
  // Parts of the block's lanes are neighbours; the division of one step serves all
  const i64 begin = i64(blockIdx.x) * kSlots + threadIdx.x / C.head.lanes, step = i64(gridDim.x) * kSlots;
  const i64 step_tokens = step / p.parts;
  const int step_parts = int(step - step_tokens * p.parts);
  i64 token = begin / p.parts;
  int part = int(begin - token * p.parts);
  while (token < p.tokens) {
    const auto from_of = [&](int head) {
      return head < p.heads_q ? static_cast<const T*>(p.q) + token * p.q_token_stride + head * p.q_head_stride
                              : static_cast<const T*>(p.k) + token * p.k_token_stride + (head - p.heads_q) * p.k_head_stride;
    };
    const auto to_of = [&](int head) {
      return head < p.heads_q ? static_cast<T*>(p.q_out) + token * p.q_out_token_stride + head * p.q_out_head_stride
                              : static_cast<T*>(p.k_out) + token * p.k_out_token_stride + (head - p.heads_q) * p.k_out_head_stride;
    };
    HeldHead<C.head> held[C.in_flight];
    QN_UNROLL
    for (int h = 0; h < C.in_flight; ++h) {
      const int head = part + h * p.parts;
      if (head < heads) load_head<C.head>(from_of(head), half, p.head_dim, lane, from_of(head) != to_of(head), held[h]);
    }
    Rotations<kPairs> rotations;
    rotations_of<C.angles, kPairs>(p.angles, position_of<C.angles>(p.angles, token), first, turns, rotations);
    QN_UNROLL
    for (int h = 0; h < C.in_flight; ++h) {
      const int head = part + h * p.parts;
      if (head >= heads) continue;
      f32 v[2 * kPairs];
      unpack_head<C.head>(held[h], half, lane, v);
      rotate<C.head>(rotations, v);
      T* const to = to_of(head);
      store_pairs<C.head>(to, half, lane, v);
      if (from_of(head) != to)
        each_rest<C.head>(from_of(head), half, p.head_dim, lane, held[h],
                          [&](int element, const Packed<T, C.head.vector>& access) { store_packed(to + element, access); });
    }
    token += step_tokens, part += step_parts;
    if (part >= p.parts) part -= p.parts, ++token;
  }
}

}  // namespace quern::rope
