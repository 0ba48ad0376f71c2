// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The products of a tile by one warpgroup: logits^T = K q^T and out^T += V^T p^T. Tokens, and then columns of head_dim, are the 64 rows
// that wgmma has at least; rows of the item are its columns.
//
//   A thread of warp w holds in s[4 i + j] token 16 w + lane / 4 + 8 (j / 2) and row 8 i + 2 (lane % 4) + j % 2,
//   and in out[m][4 i + j] the same row and column value_column<C>(m, j / 2).
//
// FP8 keys become f16 on the way to the A operand's registers. K by ldmatrix: a lane has columns 4 (lane % 4) .. + 3 of each 16, which
// stand at k = 2 (lane % 4) + {0, 1} and + 8 of the product: q has them in that order. V by ldmatrix.trans: it moves pairs of bytes, so
// that a lane has two columns of two tokens; they are the rows lane / 4 and + 8 of the product.
#pragma once
#include "quern/kit/tanh.cuh"
#include "quern/kit/wgmma_ring.cuh"
#include "quern/ops/attention/paged/few_rows_sm90/work.cuh"

namespace quern::attention {

/// Column of head_dim that half `half` of a thread's sums of 64 columns belongs to.
template <FewRowsConfig C> QN_DEVICE i32 value_column(i32 m, i32 half) {
  const i32 first = 64 * m + 16 * i32(warp_of_warpgroup()), lane = i32(ptx::lane_id());
  return has_fp8_keys(C) ? first + 2 * (lane / 4) + half : first + lane / 4 + 8 * half;
}

// ---- q ----

/// Eight neighbours of a row of q in f32; `wide`: rows begin at multiples of 16 bytes.
template <class T> QN_DEVICE void load_eight(const u8* from, bool wide, f32 (&x)[8]) {
  if (wide) {
    load_f32<T, 8>(reinterpret_cast<const T*>(from), x);
  } else {
    QN_UNROLL
    for (int i = 0; i < 8; ++i) {
      f32 one[1];
      load_f32<T, 1>(reinterpret_cast<const T*>(from) + i, one);
      x[i] = one[0];
    }
  }
}

/// The item's rows of q, and what is known of each; rows beyond the last are zeros. By the warpgroups that multiply, a warp a row.
template <FewRowsConfig C> QN_DEVICE void store_queries(const FewRowsParams& p, const Segment& s, u8* smem) {
  using Q = dtype_t<C.q_dtype>;
  using T = dtype_t<C.dtype>;
  constexpr auto S = few_rows_smem(C);
  constexpr paged::BoxTile kTile = tile_of_queries(C);
  constexpr bool kBroughtIntoRange = C.q_dtype == DType::bf16 && C.dtype == DType::f16 && kIsFloat<f32>;  // other numbers are not rounded
  constexpr i32 kWarps = C.warpgroups * 4;
  static_assert(C.head_dim / 8 <= 32);
  const i32 lane = i32(ptx::lane_id());
  const u32 tile = ptx::smem_address(smem + S.queries);
  QN_NO_UNROLL
  for (i32 row = i32(threadIdx.x / 32); row < C.group_rows; row += kWarps) {
    const RowPlace place = row_place<C>(p, s.head_kv, s.head_tile, min_of(row, s.rows - 1));
    const i64 token = s.queries.begin + place.query;
    const bool has = row < s.rows && lane < C.head_dim / 8;
    f32 x[8] = {};
    if (has) load_eight<Q>(p.q + token * p.q_token + i64(place.head_q) * p.q_head + lane * 8 * i32(sizeof(Q)), p.q_wide != 0, x);
    f32 factor = 1.f;
    if constexpr (kBroughtIntoRange) {
      f32 most = 0.f;
      QN_UNROLL
      for (int i = 0; i < 8; ++i) most = ptx::fmax(most, ptx::fabs(x[i]));
      factor = f16_range_of(warp_max(most));
      const f32 by = ptx::div(f32(1.f), factor);
      QN_UNROLL
      for (int i = 0; i < 8; ++i) x[i] = x[i] * by;
    }
    if (lane < C.head_dim / 8) {
      QN_UNROLL
      for (u32 i = 0; i < 4; ++i) {
        const u32 column = 8 * u32(lane) + 2 * i;
        // Of FP8 keys columns 4 t + 2 h + {0, 1} of each 16 stand at 8 h + 2 t + {0, 1}
        const u32 at = has_fp8_keys(C) ? column / 16 * 16 + column % 4 / 2 * 8 + column % 16 / 4 * 2 : column;
        ptx::st_shared<u32>(smem + S.queries + (paged::place_in_tile<kTile>(tile, u32(row), 2 * at) - tile),
                            pack_word(x[2 * i], x[2 * i + 1], T{}));
      }
    }
    if (lane == 0) {
      Span span{s.first, s.keys.end - 1};
      if constexpr (C.several != 0) span = visible_span(p, s.queries, s.keys, place.query);
      f32 scale = f32(p.scale) * factor;
      if constexpr (C.scales != 0) scale = scale * scale_at(p.k_scale, s.request, s.head_kv) * scale_at(p.q_scale, token, place.head_q);
      RowFacts* facts = reinterpret_cast<RowFacts*>(smem + S.rows) + row;
      facts->first = span.first, facts->last = span.last;
      ptx::st_shared<u32>(&facts->scale, ptx::bits_of(scale));
    }
  }
}

// ---- products ----

/// Two FP8 numbers of a half of a word, as f16.
template <DType kDType> QN_DEVICE u32 widen(u32 pair) {
  return kDType == DType::e4m3 ? ptx::f16x2_of_e4m3x2(u16(pair)) : ptx::f16x2_of_e5m2x2(u16(pair));
}

/// logits^T of a tile of K, which begins at `keys`.
template <FewRowsConfig C> QN_DEVICE void multiply_keys(u32 keys, u32 queries, f32 (&s)[C.group_rows / 2]) {
  using T = dtype_t<C.dtype>;
  constexpr paged::BoxTile kKeys = tile_of_keys(C), kQueries = tile_of_queries(C);
  constexpr i32 kSteps = C.head_dim / 16;
  const MatrixDescriptor q = k_major_descriptor(queries, swizzle_of(kQueries));
  if constexpr (has_fp8_keys(C)) {
    u32 a[kSteps][4];
    const u32 lane = ptx::lane_id(), row = 16 * warp_of_warpgroup() + lane % 16;
    QN_UNROLL
    for (i32 step = 0; step < kSteps; step += 2) {  // rows 0..7 and 8..15 of 16 bytes, and of the next 16
      u32 raw[4];
      ptx::ldmatrix_x4(raw, paged::place_in_tile<kKeys>(keys, row, 16 * min_of(u32(step) + lane / 16, u32(kSteps - 1))));
      QN_UNROLL
      for (i32 i = 0; i < 4; ++i) {
        if (step + i / 2 >= kSteps) continue;
        a[step + i / 2][i % 2] = widen<C.kv_dtype>(raw[i]), a[step + i / 2][2 + i % 2] = widen<C.kv_dtype>(raw[i] >> 16);
      }
    }
    QN_UNROLL
    for (i32 step = 0; step < kSteps; ++step) ptx::wgmma_hold(a[step]);
    hold(s);
    ptx::wgmma_fence();
    QN_UNROLL
    for (i32 step = 0; step < kSteps; ++step)
      ptx::wgmma<T, T>(s, a[step], q.advanced(offset_in_tile(kQueries, 0, 32 * u32(step))), step > 0);
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
    QN_UNROLL
    for (i32 step = 0; step < kSteps; ++step) ptx::wgmma_hold(a[step]);
  } else {
    const MatrixDescriptor k = k_major_descriptor(keys, swizzle_of(kKeys));
    hold(s);
    ptx::wgmma_fence();
    QN_UNROLL
    for (i32 step = 0; step < kSteps; ++step)
      ptx::wgmma<T, T>(s, k.advanced(offset_in_tile(kKeys, 0, 32 * u32(step))), q.advanced(offset_in_tile(kQueries, 0, 32 * u32(step))),
                       step > 0);
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
  }
  hold(s);
}

/// out^T += V^T p^T of a tile of V, which begins at `values`, and of the probabilities of the same tokens.
template <FewRowsConfig C> QN_DEVICE void multiply_values(u32 values, u32 probabilities, f32 (&out)[value_tiles(C)][C.group_rows / 2]) {
  using T = dtype_t<C.dtype>;
  constexpr paged::BoxTile kValues = tile_of_keys(C);
  constexpr i32 kSteps = kTileTokens / 16;
  const MatrixDescriptor b = k_major_descriptor(probabilities, Swizzle::b128);
  if constexpr (has_fp8_keys(C)) {
    u32 a[value_tiles(C)][kSteps][4];
    const u32 lane = ptx::lane_id();
    QN_UNROLL
    for (i32 m = 0; m < value_tiles(C); ++m) {
      const u32 chunk = 4 * u32(m) + warp_of_warpgroup();
      QN_UNROLL
      for (i32 step = 0; step < kSteps; step += 2) {  // four times eight tokens
        u32 raw[4] = {};
        if (chunk < u32(C.head_dim / 16))
          ptx::ldmatrix_x4_trans(raw, paged::place_in_tile<kValues>(values, 16 * u32(step) + lane, 16 * chunk));
        QN_UNROLL
        for (i32 i = 0; i < 4; ++i) {  // bytes: column, column + 1 of a token, and of the next token
          const u32 first = (raw[i] & 0xff) | (raw[i] >> 8 & 0xff00), second = (raw[i] >> 8 & 0xff) | (raw[i] >> 16 & 0xff00);
          a[m][step + i / 2][2 * (i % 2)] = widen<C.kv_dtype>(first), a[m][step + i / 2][2 * (i % 2) + 1] = widen<C.kv_dtype>(second);
        }
      }
      QN_UNROLL
      for (i32 step = 0; step < kSteps; ++step) ptx::wgmma_hold(a[m][step]);
    }
    hold(out);
    ptx::wgmma_fence();
    QN_UNROLL
    for (i32 m = 0; m < value_tiles(C); ++m) {
      QN_UNROLL
      for (i32 step = 0; step < kSteps; ++step) ptx::wgmma<T, T>(out[m], a[m][step], b.advanced(32 * u32(step)), true);
    }
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
    QN_UNROLL
    for (i32 m = 0; m < value_tiles(C); ++m) {
      QN_UNROLL
      for (i32 step = 0; step < kSteps; ++step) ptx::wgmma_hold(a[m][step]);
    }
  } else {
    constexpr u32 kWidth = u32(column_bytes(kValues));
    const MatrixDescriptor v = mn_major_descriptor(values, swizzle_of(kValues), kTileTokens * kWidth, 8 * kWidth);
    hold(out);
    ptx::wgmma_fence();
    QN_UNROLL
    for (i32 m = 0; m < value_tiles(C); ++m) {
      QN_UNROLL
      for (i32 step = 0; step < kSteps; ++step)
        ptx::wgmma<T, T, WgmmaForm{.a = Major::mn}>(out[m], v.advanced(u32(m) * kTileTokens * 128 + 16 * kWidth * u32(step)),
                                                    b.advanced(32 * u32(step)), true);
    }
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
  }
  hold(out);
}

/// Rows of a tile of V outside of [from, end) become zeros: what no row of the item sees may be NaN, and a probability of 0 times that is
/// NaN. By a warpgroup.
template <FewRowsConfig C> QN_DEVICE void zero_values(u8* values, i32 from, i32 end) {
  paged::clear_other_rows<tile_of_keys(C)>(values, from, end, i32(thread_of_warpgroup()), kWarpgroupSize);
  ptx::fence_proxy_async_shared();
  sync_warpgroup();
}

}  // namespace quern::attention
