// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Sines and cosines of neighbouring pairs of a token, which a lane keeps in registers for all of its heads.
#pragma once
#include "quern/bricks/index.cuh"
#include "quern/kit/kit.cuh"
#include "quern/ops/rope/rotate/spec.h"

namespace quern::rope {

/// Turns per position of kPairs pairs, as the sum of two floats.
template <int kPairs> struct Turns {
  f32 high[kPairs], low[kPairs];
};
template <int kPairs> struct Rotations {
  f32 sine[kPairs], cosine[kPairs];
};

/// Copies the turns of Params to shared memory, with a barrier: lanes that index Params would serialise the constant cache for every warp.
template <AngleConfig C, int kThreads> QN_DEVICE void stage_turns(const AngleParams& p, f32* smem) {
  if constexpr (C.angles == Angles::theta) {
    for (int i = threadIdx.x; i < kMaxPairs; i += kThreads) smem[i] = p.turns_high[i], smem[kMaxPairs + i] = p.turns_low[i];
    ptx::sync_block();
  }
}

/// Turns of the pairs from `first` on; a pair behind the last has none.
template <AngleConfig C, int kPairs> QN_DEVICE void load_turns(const AngleParams& p, const f32* smem, int first, Turns<kPairs>& turns) {
  QN_UNROLL
  for (int j = 0; j < kPairs; ++j) {
    turns.high[j] = 0.f, turns.low[j] = 0.f;
    if (first + j >= p.half) continue;
    if constexpr (C.angles == Angles::theta) turns.high[j] = smem[first + j], turns.low[j] = smem[kMaxPairs + first + j];
    if constexpr (C.angles == Angles::frequencies) {
      const float* from = p.frequencies + (first + j) * p.frequency_stride;
      turns.high[j] = ptx::ld_global<f32>(from), turns.low[j] = ptx::ld_global<f32>(from + 1);
    }
  }
}

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

/// A token's positions: one, or one of each section.
template <AngleConfig C> struct Position {
  i64 of[C.positions_of == PositionsOf::sections ? 3 : 1];
};

/// The position of a token whose request begins at position offsets[b] with token indptr[b]; 0 of a token of no request.
template <AngleConfig C> QN_DEVICE i64 position_in_request(const AngleParams& p, i64 token) {
  i64 low = 0, high = p.batch;  // all before low begin at or before the token, none from high on
  QN_NO_UNROLL
  while (low < high) {
    const i64 middle = (low + high) / 2;
    if (load_index<C.index_dtype>(p.positions, middle) <= token) low = middle + 1;
    else high = middle;
  }
  if (low == 0 || load_index<C.index_dtype>(p.positions, low) <= token) return 0;
  return load_index<C.index_dtype>(p.offsets, low - 1) + token - load_index<C.index_dtype>(p.positions, low - 1);
}

template <AngleConfig C> QN_DEVICE Position<C> position_of(const AngleParams& p, i64 token) {
  Position<C> position;
  if constexpr (C.positions_of == PositionsOf::requests) {
    position.of[0] = position_in_request<C>(p, token);
  } else {
    QN_UNROLL
    for (int s = 0; s < int(sizeof position.of / sizeof position.of[0]); ++s)
      position.of[s] = load_index<C.index_dtype>(p.positions, s * p.position_stride + token);
  }
  return position;
}

/// The section of a pair: time, height or width.
QN_DEVICE int section_of(const AngleParams& p, int pair) {
  if (p.sections_interleaved != 0) {
    const int s = pair % 3;
    return s != 0 && pair < 3 * p.sections[s] ? s : 0;
  }
  return pair < p.sections[0] ? 0 : pair < p.sections[0] + p.sections[1] ? 1 : 2;
}

template <AngleConfig C> QN_DEVICE i64 position_of_pair(const AngleParams& p, const Position<C>& position, int pair) {
  if constexpr (C.positions_of == PositionsOf::sections) {
    const int s = section_of(p, pair);
    return s == 0 ? position.of[0] : s == 1 ? position.of[1] : position.of[2];
  } else {
    return position.of[0];
  }
}

/// kPairs numbers of a row of cos or sin, by whole accesses where the row is dense.
template <AngleConfig C, int kPairs> QN_DEVICE void load_table_row(const void* table, i64 row_start, int first, i64 pair_stride,
                                                                   const AngleParams& p, f32 (&out)[kPairs]) {
  using W = dtype_t<C.table_dtype>;
  const W* from = static_cast<const W*>(table) + row_start + first * pair_stride;
  constexpr int kStep = min_of(kPairs, 16 / int(sizeof(W)));
  if (p.dense_table != 0 && first + kPairs <= p.half) {
    QN_UNROLL
    for (int a = 0; a < kPairs; a += kStep) {
      f32 part[kStep];
      load_f32<W, kStep>(from + a, part);
      QN_UNROLL
      for (int j = 0; j < kStep; ++j) out[a + j] = part[j];
    }
    return;
  }
  QN_UNROLL
  for (int j = 0; j < kPairs; ++j) out[j] = first + j < p.half ? to_f32(ptx::ld_global<W>(from + j * pair_stride)) : f32(0.f);
}

/// Sines and cosines of the pairs from `first` on; NaN where a position is none.
template <AngleConfig C, int kPairs>
QN_DEVICE void rotations_of(const AngleParams& p, const Position<C>& position, int first, const Turns<kPairs>& turns,
                            Rotations<kPairs>& r) {
  const f32 nan = ptx::f32_of_bits(0x7fffffffu);
  const auto is_one = [&](i64 at) { return at >= 0 && at < p.limit; };
  if constexpr (C.angles == Angles::table && C.positions_of != PositionsOf::sections) {
    const i64 row = position.of[0];
    if (is_one(row)) {
      load_table_row<C, kPairs>(p.cos, row * p.cos_row_stride, first, p.cos_pair_stride, p, r.cosine);
      load_table_row<C, kPairs>(p.sin, row * p.sin_row_stride, first, p.sin_pair_stride, p, r.sine);
    }
  }
  QN_UNROLL
  for (int j = 0; j < kPairs; ++j) {
    const i64 at = position_of_pair<C>(p, position, first + j);
    if constexpr (C.angles != Angles::table) {
      rotation(f32(float(at)), turns.high[j], turns.low[j], r.sine[j], r.cosine[j]);
      r.sine[j] = r.sine[j] * f32(p.cos_sin_scale), r.cosine[j] = r.cosine[j] * f32(p.cos_sin_scale);
    } else if constexpr (C.positions_of == PositionsOf::sections) {
      using W = dtype_t<C.table_dtype>;
      const bool read = first + j < p.half && is_one(at);
      const i64 pair = first + j;
      r.cosine[j] =
          read ? to_f32(ptx::ld_global<W>(static_cast<const W*>(p.cos) + at * p.cos_row_stride + pair * p.cos_pair_stride)) : f32(0.f);
      r.sine[j] =
          read ? to_f32(ptx::ld_global<W>(static_cast<const W*>(p.sin) + at * p.sin_row_stride + pair * p.sin_pair_stride)) : f32(0.f);
    }
    if (!is_one(at)) r.sine[j] = nan, r.cosine[j] = nan;
  }
}

}  // namespace quern::rope
