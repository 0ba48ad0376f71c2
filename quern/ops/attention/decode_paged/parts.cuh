// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What both kernels of decode_paged know: a request's tokens, how its work is counted, how a row of sums becomes an output.
//
// Words: an item is one row, KV head and tile of at most 16 query heads; its units are consecutive runs of visible tokens;
// a part is what one block sums of an item: out / sum and lse, the shape that parts are merged in.
#pragma once
#include "quern/kit/kit.cuh"
#include "quern/ops/attention/decode_paged/spec.h"

namespace quern::attention {

constexpr float kLog2E = 1.44269504088896341f;
constexpr float kLn2 = 0.69314718055994531f;

/// Tokens of a request. Never more than its table can name, whatever the tensors hold.
QN_DEVICE i32 request_length(const DecodePagedParams& p, i64 row) {
  i32 length;
  if (p.seq_lens) {
    length = ptx::ld_global_nc<i32>(p.seq_lens + row);
  } else {
    const i32 pages = ptx::ld_global_nc<i32>(p.page_indptr + row + 1) - ptx::ld_global_nc<i32>(p.page_indptr + row);
    if (pages <= 0) return 0;
    const i32 last = min_of(max_of(ptx::ld_global_nc<i32>(p.last_page_len + row), 1), i32(p.page_size.value));
    const i64 tokens = i64(pages - 1) * p.page_size.value + last;
    length = i32(min_of<i64>(tokens, p.capacity));
  }
  return min_of(max_of(length, 0), p.capacity);
}

/// The first token inside the window.
QN_DEVICE i32 first_visible(const DecodePagedParams& p, i32 length) {
  return p.window_left < 0 ? 0 : max_of(0, length - 1 - p.window_left);
}

/// Units of one item of a row: chunks, or block tiles of `tile` tokens.
template <bool kFixedChunks> QN_DEVICE i32 units_of(i32 visible, i32 tile) {
  return ceil_div(visible, kFixedChunks ? chunk_tokens(visible) : tile);
}

/// Query heads of an item.
QN_DEVICE i32 item_heads(const DecodePagedParams& p, i32 head_tile) { return min_of(16, p.group - head_tile * 16); }

/// What turns a sum of weighted rows into an output: the factor and the row's lse.
struct Finish {
  f32 factor;
  f32 lse;
};
/// `state`: maximum and sum of exp2(logit - max + shift). The sink joins the sum as one more logit.
QN_DEVICE Finish finish_softmax(SoftmaxState state, const float* sink, i32 head_q, f32 shift) {
  f32 factor = 1.f;
  if (sink) {
    const f32 logit = ptx::ld_global_nc<f32>(sink + head_q) * f32(kLog2E);
    factor = raise_max(state, logit);
    state.sum = state.sum + softmax_weight(logit + shift, state.max);
  }
  const bool some = state.sum != f32(0.f);  // NaN is something
  return {some ? factor * ptx::rcp_approx(state.sum) : f32(0.f), softmax_lse(state) - shift};
}

/// Two neighbours of an output row.
template <class T> QN_DEVICE void store_pair(T* to, f32 low, f32 high, bool aligned) {
  const u32 pair = pack_word(low, high, T{});
  if (aligned) {
    ptx::st_global<u32>(to, pair);
  } else {
    ptx::st_global<u16>(to, u16(pair));
    ptx::st_global<u16>(to + 1, u16(pair >> 16));
  }
}

}  // namespace quern::attention
