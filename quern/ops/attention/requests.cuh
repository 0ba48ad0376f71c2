// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What a kernel of the family reads of a request: its query tokens, its keys, what each query sees. No tensor is read or written
// beyond its end, whatever the index tensors hold.
#pragma once
#include "quern/ops/attention/attend_spec.h"
#include "quern/ops/attention/tile_rows.cuh"

namespace quern::attention {

/// Query tokens of a request: [begin, begin + count).
struct QueryTokens {
  i64 begin;
  i32 count;
};
QN_DEVICE QueryTokens query_tokens(const AttendParams& p, i64 request) {
  if (p.q_indptr == nullptr) return {request, 1};
  const i64 begin = min_of<i64>(max_of<i64>(ptx::ld_global_nc<i32>(p.q_indptr + request), 0), p.tokens);
  const i64 end = min_of<i64>(ptx::ld_global_nc<i32>(p.q_indptr + request + 1), p.tokens);
  return {begin, i32(max_of<i64>(end - begin, 0))};
}
/// Row r of a request and KV head is query token r / group, query head r % group.
struct RowPlace {
  i32 query;  // of the request's
  i32 head_q;
};
QN_DEVICE RowPlace place_of_row(const AttendParams& p, i32 head_kv, i32 row) {
  const i32 query = i32(quotient(u32(row), p.group));
  return {query, head_kv * i32(p.group.value) + row - query * i32(p.group.value)};
}
QN_DEVICE u8* out_of(const AttendParams& p, i64 token, i32 head_q) {
  return static_cast<u8*>(p.out) + token * p.out_token + i64(head_q) * p.out_head;
}
QN_DEVICE void store_lse(const AttendParams& p, i64 token, i32 head_q, f32 lse) {
  ptx::st_global<f32>(p.out_lse + token * p.lse_token + i64(head_q) * p.lse_head, lse * f32(p.lse_factor));
}

/// Keys of a request.
struct Keys {
  i32 length;        // as told: query positions follow from it
  i32 end;           // keys from here on are never read
  i64 first;         // contiguous: row of key 0
  const i32* pages;  // else its entries of the page table
};
/// C: any Config with `places` and `lens_dtype`.
template <auto C> QN_DEVICE Keys keys_of(const AttendParams& p, i64 request) {
  i64 length;
  Keys keys{0, 0, 0, nullptr};
  i64 most = p.capacity;
  if constexpr (C.places == KeyPlaces::contiguous) {
    keys.first = ptx::ld_global_nc<i32>(p.kv_indptr + request);
    length = i64(ptx::ld_global_nc<i32>(p.kv_indptr + request + 1)) - keys.first;
    most = keys.first < 0 ? 0 : min_of<i64>(most, max_of<i64>(p.rows_of_keys - keys.first, 0));
  } else if constexpr (C.places == KeyPlaces::page_table) {
    length = C.lens_dtype == DType::i64 ? ptx::ld_global_nc<i64>(static_cast<const i64*>(p.seq_lens) + request)
                                        : i64(ptx::ld_global_nc<i32>(static_cast<const i32*>(p.seq_lens) + request));
    keys.pages = p.pages + request * p.table_row;
  } else {
    const i64 begin = ptx::ld_global_nc<i32>(p.kv_indptr + request), count = i64(ptx::ld_global_nc<i32>(p.kv_indptr + request + 1)) - begin;
    length = 0;
    if (count > 0)
      length =
          (count - 1) * p.page_size.value + min_of(max_of(ptx::ld_global_nc<i32>(p.last_page_len + request), 1), i32(p.page_size.value));
    keys.pages = p.pages + begin;
    most = begin < 0 ? 0 : min_of<i64>(most, max_of<i64>(p.table_row - begin, 0) * p.page_size.value);
  }
  keys.length = i32(min_of<i64>(max_of<i64>(length, 0), kNoWindow));
  keys.end = i32(min_of<i64>(keys.length, most));
  return keys;
}

/// Visible keys of a query token, [first, last].
struct Span {
  i32 first, last;
};
QN_DEVICE Span visible_span(const AttendParams& p, const QueryTokens& queries, const Keys& keys, i32 query) {
  const i32 position = keys.length - queries.count + query;
  return {max_of(0, position - p.window_left), i32(min_of<i64>(keys.end - 1, i64(position) + p.window_right))};
}

QN_DEVICE f32 scale_at(const ScaleTensor& scale, i64 row, i64 head) {
  return scale.data == nullptr ? f32(1.f) : ptx::ld_global_nc<f32>(scale.data + row * scale.strides[0] + head * scale.strides[1]);
}

/// Bit of the packed mask: query token and key of a request, little-endian in a byte.
QN_DEVICE bool bit_visible(const AttendParams& p, i64 request, i32 length, i32 query, i32 key) {
  const i64 bit = i64(query) * length + key, byte = ptx::ld_global_nc<i32>(p.mask_indptr + request) + bit / 8;
  return byte >= 0 && byte < p.mask_bytes && (ptx::ld_global_nc<u8>(p.mask + byte) >> (bit % 8) & 1) != 0;
}

/// The page of a key; where the table names none of the cache's, the last one.
QN_DEVICE i32 page_at(const AttendParams& p, const i32* pages, i32 key) {
  return i32(min_of(u32(ptx::ld_global_nc<i32>(pages + quotient(u32(key), p.page_size))), p.last_page));
}

QN_DEVICE f32 sink_of(const AttendParams& p, i32 head_q) {
  if (p.sink_dtype == DType::f32) return ptx::ld_global<f32>(static_cast<const f32*>(p.sink) + head_q);
  const u16 bits = ptx::ld_global<u16>(static_cast<const u16*>(p.sink) + head_q);
  return p.sink_dtype == DType::f16 ? to_f32(f16{bits}) : to_f32(bf16{bits});
}

/// What a complete row is multiplied with, beside its factor.
QN_DEVICE f32 result_factor(const AttendParams& p, i64 request, i32 head_kv) {
  return f32(p.out_scale) * scale_at(p.v_scale, request, head_kv);
}

/// A row's state becomes its factor and lse; the sink joins.
QN_DEVICE Finish finish_row(const AttendParams& p, SoftmaxState state, i32 head_q, f32 shift) {
  f32 factor = 1.f;
  const bool seen = state.sum != f32(0.f);
  if (p.sink) factor = add_sink(state, sink_of(p, head_q), shift);
  Finish finish = finish_state(state, factor, shift);
  finish.seen = seen;
  return finish;
}

}  // namespace quern::attention
