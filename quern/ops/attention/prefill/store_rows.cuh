// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/quad.cuh"
#include "quern/ops/attention/prefill/logits.cuh"

namespace quern::attention {

/// 8 kPairs neighbouring elements of an output row by a quad, of which each lane has columns 8 i + 2 q and the next: in 16 bytes a lane where rows are aligned, else in pairs. By all lanes
/// of the warp; `stored`: whether the quad's row is.
template <class T, int kPairs, class Element> QN_DEVICE void store_row(const AttendParams& p, T* to, bool stored, const Element& element) {
  const u32 quad = ptx::lane_id() % 4;
  if (p.out_wide) {
    QN_UNROLL
    for (int first = 0; first < kPairs; first += 4) {
      u32 words[4] = {};
      QN_UNROLL
      for (int i = 0; i < 4 && first + i < kPairs; ++i) words[i] = pack_word(element(first + i, 0), element(first + i, 1), T{});
      transpose_quad(words);
      if (stored && first + int(quad) < kPairs) ptx::st_global(to + 8 * (first + int(quad)), u32x4{words[0], words[1], words[2], words[3]});
    }
  } else {
    QN_UNROLL
    for (int i = 0; i < kPairs; ++i)
      if (stored) store_pair(to + 8 * i + 2 * quad, element(i, 0), element(i, 1), p.out_pairs != 0);
  }
}

/// The row sums of a warp become outputs. The lane has rows `row` of the tile, and + 8, of each MMA tile, and of v's columns those from `column` on.
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
      store_row<T, WarpRows<C>::kColumns / 8>(p, reinterpret_cast<T*>(out_of(p, token, place.head_q)) + column, stored, [&](int i, int e) { return finished(finish, rows.out[m][i][2 * half + e], by); });
      if (stored && column == 0 && ptx::lane_id() % 4 == 0 && p.out_lse) store_lse(p, token, place.head_q, finish.lse);
    }
  }
}

}  // namespace quern::attention
