// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// From products to logits, from logits to probabilities.
#pragma once
#include "quern/kit/tanh.cuh"
#include "quern/ops/attention/hooks.cuh"
#include "quern/ops/attention/prefill/tile.cuh"

namespace quern::attention {

/// Whether every row of the tile sees every one of the keys [first, first + tile_tokens), as far as lengths and windows say.
template <PrefillConfig C> QN_DEVICE bool all_visible(const PrefillParams& p, const RowTile& at, i32 first) {
  const Span top = visible_span(p, at.queries, at.keys, i32(quotient(u32(at.first_row), p.group)));
  const Span bottom = visible_span(p, at.queries, at.keys, i32(quotient(u32(at.first_row + at.rows - 1), p.group)));
  return bottom.first <= first && first + C.tile_tokens - 1 <= top.last;
}

template <class H> QN_DEVICE TileVisibility tile_of(const PrefillParams& p, const RowTile& at, i32 first, i32 end) {
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

/// Whether logits are products times one positive number of the call: then the multiplication is one with the exponent's subtraction. The maximum is
/// rounded and the product in the subtraction is not, so a row's probabilities have a factor of 2^d, d at most half of the maximum's last place. It cancels
/// in the row's result while it is small: up to kLateMost it is at most 2. Beside f16's shift it could pass 2^16.
constexpr float kLateMost = 16777216.f;
template <PrefillConfig C, class H> QN_DEVICE bool scales_late(const PrefillParams& p) {
  return C.dtype == DType::bf16 && !C.soft_cap && !has_logit<H> && p.scale > 0 && p.q_scale.data == nullptr && p.k_scale.data == nullptr;
}

/// Products become logits in units of log2, but for the scale where it comes late. `masked`: what is not visible becomes -inf; else all is.
template <PrefillConfig C, class H>
QN_DEVICE void make_logits(const PrefillParams& p, const RowTile& at, i32 first, bool masked, bool late, Logits<C>& x) {
  constexpr bool kPlain = !C.soft_cap && !has_logit<H>;
  if (late && !masked) return;
  const u32 lane = ptx::lane_id();
  QN_UNROLL
  for (int m = 0; m < C.row_tiles; ++m) {
    QN_UNROLL
    for (int half = 0; half < 2; ++half) {
      const i32 row = at.first_row + min_of(i32(warp_row<C>() + 16 * m + lane / 4 + 8 * half), at.rows - 1);  // rows beyond the last: the last one's
      const auto [query, head_q] = place_of_row(p, at.head_kv, row);
      const Span span = visible_span(p, at.queries, at.keys, query);
      const f32 scale = p.q_scale.data == nullptr ? at.scale : at.scale * scale_at(p.q_scale, at.queries.begin + query, head_q);
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

/// Online softmax over a tile: logits times `scale` become probabilities, and sums move to the new maximum.
template <PrefillConfig C> QN_DEVICE void make_probabilities(Logits<C>& x, f32 scale, WarpRows<C>& rows) {
  QN_UNROLL
  for (int m = 0; m < C.row_tiles; ++m) {
    QN_UNROLL
    for (int half = 0; half < 2; ++half) {
      f32 most = ptx::fmax(x[m][0][2 * half], x[m][0][2 * half + 1]);
      QN_UNROLL
      for (int n = 1; n < C.tile_tokens / 8; ++n) most = ptx::fmax(most, ptx::fmax(x[m][n][2 * half], x[m][n][2 * half + 1]));
      SoftmaxState& state = rows.states[m][half];
      const f32 factor = raise_max(state, warp_max<4>(most) * scale);
      const f32 base = state.max == negative_infinity() ? f32(0.f) : state.max;
      bool rounded = C.dtype != DType::bf16;  // there scale is 1
      if constexpr (kIsFloat<f32> && C.dtype == DType::bf16) rounded = ptx::fabs(base) > kLateMost;
      QN_UNROLL
      for (int n = 0; n < C.tile_tokens / 8; ++n) {
        QN_UNROLL
        for (int e = 0; e < 2; ++e) {
          f32& value = x[m][n][2 * half + e];
          if (rounded) value = probability_of<C.dtype>(value * scale, base);
          else value = ptx::exp2_approx(ptx::fma(value, scale, f32(0.f) - base));
          state.sum = state.sum + value;
        }
      }
      QN_UNROLL
      for (int j = 0; j < WarpRows<C>::kColumns / 8; ++j) {
        rows.out[m][j][2 * half] = rows.out[m][j][2 * half] * factor;
        rows.out[m][j][2 * half + 1] = rows.out[m][j][2 * half + 1] * factor;
      }
    }
  }
}

/// Probabilities of 16 keys as the A operand: rows by keys.
template <PrefillConfig C> QN_DEVICE void pack_probabilities(const Logits<C>& x, int step, u32 (&packed)[C.row_tiles][4]) {
  QN_UNROLL
  for (int m = 0; m < C.row_tiles; ++m) {
    QN_UNROLL
    for (int i = 0; i < 4; ++i) packed[m][i] = pack_word(x[m][2 * step + i / 2][i % 2 * 2], x[m][2 * step + i / 2][i % 2 * 2 + 1], dtype_t<C.dtype>{});
  }
}

}  // namespace quern::attention
