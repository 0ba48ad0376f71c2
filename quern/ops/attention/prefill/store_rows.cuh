// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// From the sums of a warp to rows of out and out_lse, for every kernel for many rows.
#pragma once
#include "quern/kit/quad.cuh"
#include "quern/ops/attention/prefill/logits.cuh"

namespace quern::attention {

/// 16 bytes of an output row, in pieces where rows are less aligned.
template <class T> QN_DEVICE void store_words(const AttendParams& p, T* to, const u32 (&words)[4]) {
  if (p.out_wide) {
    ptx::st_global(to, u32x4{words[0], words[1], words[2], words[3]});
  } else {
    QN_UNROLL
    for (int i = 0; i < 4; ++i) store_word(to + 2 * i, words[i], p.out_pairs != 0);
  }
}

/// 8 kPairs neighbouring elements of an output row by a quad, of which each lane has columns 8 i + 2 q and the next. By all lanes of the
/// warp; `stored`: whether the quad's row is.
template <class T, int kPairs, class Element> QN_DEVICE void store_row(const AttendParams& p, T* to, bool stored, const Element& element) {
  const int quad = int(ptx::lane_id() % 4);
  QN_UNROLL
  for (int first = 0; first < kPairs; first += 4) {
    u32 words[4] = {};
    QN_UNROLL
    for (int i = 0; i < 4 && first + i < kPairs; ++i) words[i] = pack_word(element(first + i, 0), element(first + i, 1), T{});
    transpose_quad(words);
    if (stored && first + quad < kPairs) store_words(p, to + 8 * (first + quad), words);
  }
}

/// The row sums of a warp become outputs. The lane has rows `row` of the tile, and + 8, of each MMA tile, and of v's columns those from
/// `column` on.
template <auto C> QN_DEVICE void store_rows(const AttendParams& p, const RowTile& at, u32 row, i32 column, WarpRows<C>& rows) {
  using T = dtype_t<C.out_dtype>;
  QN_UNROLL
  for (int m = 0; m < C.row_tiles; ++m) {
    QN_UNROLL
    for (int half = 0; half < 2; ++half) {
      SoftmaxState state = rows.states[m][half];
      state.sum = warp_sum<4>(state.sum);
      const i32 in_tile = i32(row + 16 * m + 8 * half), used = max_of(0, min_of(in_tile, at.rows - 1));
      const bool stored = in_tile < at.rows;
      const RowPlace place = place_of_row(p, at.head_kv, at.first_row + used);
      const i64 token = at.queries.begin + place.query;
      const Finish finish = finish_row(p, state, place.head_q, sum_shift_of<C.dtype>());
      const f32 by = finish.factor * result_factor(p, at.request, at.head_kv);
      store_row<T, WarpRows<C>::kColumns / 8>(p, reinterpret_cast<T*>(out_of(p, token, place.head_q)) + column, stored,
                                              [&](int i, int e) { return finished(finish, rows.out[m][i][2 * half + e], by); });
      if (stored && column == 0 && ptx::lane_id() % 4 == 0 && p.out_lse) store_lse(p, token, place.head_q, finish.lse);
    }
  }
}

}  // namespace quern::attention
