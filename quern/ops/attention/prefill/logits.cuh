// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// From products to logits, from logits to probabilities, of tiles whose products lie in registers as the MMAs leave them. C is a Config of
// a kernel for many rows.
#pragma once
#include "quern/kit/tanh.cuh"
#include "quern/ops/attention/hooks.cuh"
#include "quern/ops/attention/prefill/request.cuh"

namespace quern::attention {

/// What a warp holds: logits of its rows and a tile's keys, then sums of its part of v's columns.
template <auto C> struct WarpRows {
  static constexpr int kColumns = C.head_dim_v / C.column_parts;
  SoftmaxState states[C.row_tiles][2];  // rows lane / 4 and + 8 of each MMA tile; each lane has the sum of its own columns
  f32 out[C.row_tiles][kColumns / 8][4];
};
template <auto C> using Logits = f32[C.row_tiles][C.tile_tokens / 8][4];
/// Of the lane's rows, where the Config has them: powers of two that logits are multiplied with.
template <auto C> struct RowFactors {
  f32 of_rows[has_row_factors(C) ? C.row_tiles : 1][2];
};
template <auto C> QN_DEVICE f32 scaled_for_row(f32 scale, const RowFactors<C>& factors, int m, int half) {
  if constexpr (has_row_factors(C)) return scale * factors.of_rows[m][half];
  else return scale;
}

template <auto C> QN_DEVICE void clear_rows(WarpRows<C>& rows) {
  QN_UNROLL
  for (int m = 0; m < C.row_tiles; ++m) {
    rows.states[m][0] = rows.states[m][1] = empty_softmax();
    for (auto& column : rows.out[m])
      for (f32& value : column) value = 0.f;
  }
}

/// The keys that every row of the tile sees, as far as lengths and windows say.
QN_DEVICE Span seen_by_all(const AttendParams& p, const RowTile& at) {
  const Span top = visible_span(p, at.queries, at.keys, i32(quotient(u32(at.first_row), p.group)));
  const Span bottom = visible_span(p, at.queries, at.keys, i32(quotient(u32(at.first_row + at.rows - 1), p.group)));
  return {bottom.first, top.last};
}

template <class H> QN_DEVICE TileVisibility tile_of(const AttendParams& p, const RowTile& at, i32 first, i32 end) {
  const i32 query = i32(quotient(u32(at.first_row), p.group)), last = i32(quotient(u32(at.first_row + at.rows - 1), p.group));
  const i32 before = at.keys.length - at.queries.count;
  return hooked_tile<H>({.request = i32(at.request),
                         .head_kv = at.head_kv,
                         .query_first = before + query,
                         .query_last = before + last,
                         .key_first = max_of(first, at.begin),
                         .key_last = min_of(end, at.end) - 1,
                         .query_len = at.queries.count,
                         .seq_len = at.keys.length,
                         .params = p.hook_params,
                         .tensors = p.hook_tensors});
}

/// Tiles of keys begin at multiples of tile_tokens, so that their bounds do not depend on the block's rows. From `from` on the first that a
/// hook's `tile` does not leave out.
template <auto C, class H> QN_DEVICE i32 next_tile(const AttendParams& p, const RowTile& at, i32 from) {
  if constexpr (has_tile<H>)
    while (from < at.end && tile_of<H>(p, at, from, from + C.tile_tokens) == TileVisibility::skip) from += C.tile_tokens;
  return from;
}
template <auto C, class H> QN_DEVICE i32 first_tile(const AttendParams& p, const RowTile& at) {
  return next_tile<C, H>(p, at, at.begin / C.tile_tokens * C.tile_tokens);
}

/// Whether some of a tile's keys must be tested for some of its rows, of which all see `seen`.
template <auto C, class H> QN_DEVICE bool tests_keys(const Span& seen, i32 first) {
  return C.bits != 0 || has_visible<H> || first < seen.first || first + C.tile_tokens - 1 > seen.last;
}
/// Of those the tiles that a hook's `tile` says every row sees.
template <auto C, class H> QN_DEVICE bool hook_sees_all(const AttendParams& p, const RowTile& at, const Span& seen, i32 first) {
  if constexpr (has_tile<H> && C.bits == 0)
    return first >= seen.first && first + C.tile_tokens - 1 <= seen.last &&
           tile_of<H>(p, at, first, first + C.tile_tokens) == TileVisibility::full;
  return false;
}

/// Whether logits are products times one positive number of the call: then the multiplication is one with the exponent's subtraction.
template <auto C, class H> QN_DEVICE bool scales_late(const AttendParams& p) {
  return !C.soft_cap && !has_logit<H> && p.scale > 0 && p.q_scale.data == nullptr && p.k_scale.data == nullptr;
}

/// Products become logits in units of log2, but for the scale where it comes late. `masked`: what is not visible becomes -inf; else all is.
/// Of x the lane has rows `row` of the tile, and + 8, of each MMA tile.
template <auto C, class H>
QN_DEVICE void make_logits(const AttendParams& p, const RowTile& at, u32 row, i32 first, bool masked, bool late,
                           const RowFactors<C>& factors, Logits<C>& x) {
  constexpr bool kPlain = !C.soft_cap && !has_logit<H>;
  if (late && !masked) return;
  const u32 lane = ptx::lane_id();
  QN_UNROLL
  for (int m = 0; m < C.row_tiles; ++m) {
    QN_UNROLL
    for (int half = 0; half < 2; ++half) {
      const auto [query, head_q] = place_of_row(
          p, at.head_kv, at.first_row + min_of(i32(row + 16 * m + 8 * half), at.rows - 1));  // rows beyond the last: the last one's
      const Span span = visible_span(p, at.queries, at.keys, query);
      const f32 scale = scaled_for_row<C>(
          p.q_scale.data == nullptr ? at.scale : at.scale * scale_at(p.q_scale, at.queries.begin + query, head_q), factors, m, half);
      QN_UNROLL
      for (int n = 0; n < C.tile_tokens / 8; ++n) {
        QN_UNROLL
        for (int e = 0; e < 2; ++e) {
          f32& logit = x[m][n][2 * half + e];
          const i32 key = first + 8 * n + 2 * i32(lane % 4) + e;
          const HookContext context{.request = i32(at.request),
                                    .query_token = i32(at.queries.begin) + query,
                                    .head_q = head_q,
                                    .head_kv = at.head_kv,
                                    .query_position = at.keys.length - at.queries.count + query,
                                    .key_position = key,
                                    .seq_len = at.keys.length,
                                    .params = p.hook_params,
                                    .tensors = p.hook_tensors,
                                    .query_index = query,
                                    .query_len = at.queries.count};
          bool visible = true;
          if (masked) {
            visible = key >= span.first && key <= span.last;
            if constexpr (C.bits != 0) visible = visible && bit_visible(p, at.request, at.keys.length, query, key);
            if constexpr (has_visible<H>) visible = visible && hooked_visible<H>(context);
          }
          if constexpr (kPlain) {
            if (!late) logit = logit * (scale * f32(kLog2E));
          } else if (visible) {
            logit = logit * scale;
            if constexpr (C.soft_cap != 0) logit = f32(p.soft_cap) * accurate_tanh(logit);
            logit = hooked_logit<H>(logit, context) * f32(kLog2E);
          }
          if (!visible) logit = negative_infinity();
        }
      }
    }
  }
}

/// Beside a maximum beyond this the product with `scale` is rounded before the maximum is subtracted. The maximum is rounded and the
/// product in one fma is not, so below it a row's probabilities have a factor of 2^d, d at most half of the last place of maximum - shift:
/// 2^(1/16). That of the maximum cancels in the row's result; that of maximum - shift, of f16, is another from tile to tile, 2^-24 of the
/// maximum at most, as the logits' own errors are.
constexpr float kMostFused = 1048576.f;

/// Online softmax over a tile: logits times `all` (and the row's factor, which logits have already where the scale does not come `late`)
/// become probabilities times 2^shift, states and sums move to the new maximum. `factors`: for what was summed under the old ones.
template <auto C> QN_DEVICE void make_probabilities(Logits<C>& x, f32 all, bool late, const RowFactors<C>& of_rows,
                                                    SoftmaxState (&states)[C.row_tiles][2], f32 (&factors)[C.row_tiles][2]) {
  QN_UNROLL
  for (int m = 0; m < C.row_tiles; ++m) {
    QN_UNROLL
    for (int half = 0; half < 2; ++half) {
      f32 most = ptx::fmax(x[m][0][2 * half], x[m][0][2 * half + 1]);
      QN_UNROLL
      for (int n = 1; n < C.tile_tokens / 8; ++n) most = ptx::fmax(most, ptx::fmax(x[m][n][2 * half], x[m][n][2 * half + 1]));
      const f32 scale = late ? scaled_for_row<C>(all, of_rows, m, half) : all;
      SoftmaxState& state = states[m][half];
      factors[m][half] = raise_max(state, warp_max<4>(most) * scale);
      f32 base = state.max == negative_infinity() ? f32(0.f) : state.max;
      f32 times = scale;
      const bool rounded = ptx::fabs(base) > kMostFused;
      if (ptx::any(rounded)) {  // each row for itself: others of the warp may be another request's
        QN_UNROLL
        for (int n = 0; n < C.tile_tokens / 8; ++n) {
          QN_UNROLL
          for (int e = 0; e < 2; ++e) {
            f32& value = x[m][n][2 * half + e];
            if (rounded) value = ptx::fma(value, scale, f32(-0.f)) - base;
          }
        }
        if (rounded) times = 1.f, base = 0.f;
      }
      const f32 less = sum_shift_of<C.dtype>() - base;
      QN_UNROLL
      for (int n = 0; n < C.tile_tokens / 8; ++n) {
        QN_UNROLL
        for (int e = 0; e < 2; ++e) {
          f32& value = x[m][n][2 * half + e];
          value = ptx::exp2_approx(ptx::fma(value, times, less));
          state.sum = state.sum + value;
        }
      }
    }
  }
}

/// Sums move to the new maximum.
template <auto C> QN_DEVICE void scale_sums(const f32 (&factors)[C.row_tiles][2], WarpRows<C>& rows) {
  QN_UNROLL
  for (int m = 0; m < C.row_tiles; ++m) {
    QN_UNROLL
    for (int j = 0; j < WarpRows<C>::kColumns / 8; ++j) {
      QN_UNROLL
      for (int e = 0; e < 4; ++e) rows.out[m][j][e] = rows.out[m][j][e] * factors[m][e / 2];
    }
  }
}

/// Probabilities of 16 keys as the A operand: rows by keys.
template <auto C> QN_DEVICE void pack_probabilities(const Logits<C>& x, int step, u32 (&packed)[C.row_tiles][4]) {
  QN_UNROLL
  for (int m = 0; m < C.row_tiles; ++m) {
    QN_UNROLL
    for (int i = 0; i < 4; ++i)
      packed[m][i] = pack_word(x[m][2 * step + i / 2][i % 2 * 2], x[m][2 * step + i / 2][i % 2 * 2 + 1], dtype_t<C.dtype>{});
  }
}

}  // namespace quern::attention
