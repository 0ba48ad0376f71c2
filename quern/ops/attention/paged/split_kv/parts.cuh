// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the kernels for few rows know: how a request's work is counted, and which rows an item has.
//
// Words: a request's rows are its query tokens times the query heads of a KV head, row r being token r / group and head r % group.
// An item is one request, KV head and tile of at most group_rows rows; its units are consecutive runs of keys that some row sees;
// a part is what one block sums of an item: out / sum and lse, the shape that parts are merged in.
#pragma once
#include "quern/ops/attention/paged/split_kv/spec.h"
#include "quern/ops/attention/requests.cuh"

namespace quern::attention {

/// A request as the kernels see it.
struct Request {
  QueryTokens queries;
  Keys keys;
  i32 first;  // the first key that some query sees; from keys.end on: none does
};
/// C: the Config of one of the kernels.
template <auto C> QN_DEVICE Request request_of(const AttendParams& p, i64 index) {
  Request r;
  if constexpr (C.several != 0) r.queries = query_tokens(p, index);
  else r.queries = {index, 1};
  r.keys = keys_of<C>(p, index);
  r.first = max_of(0, r.keys.length - r.queries.count - p.window_left);
  return r;
}

/// Whether the request is one of those of few rows.
template <auto C> QN_DEVICE bool is_ours(const AttendParams& p, const Request& r) {
  if constexpr (C.several != 0) return r.queries.count > 0 && has_few_rows(r.queries.count, p.group.value, most_rows(C));
  return true;
}
/// Keys that some query sees.
template <auto C> QN_DEVICE i32 visible_keys(const AttendParams& p, const Request& r) {
  return is_ours<C>(p, r) ? max_of(0, r.keys.end - r.first) : 0;
}

/// Units of one item of a request: chunks, or block tiles of `tile` tokens.
template <bool kFixedChunks> QN_DEVICE i32 units_of(i32 visible, i32 tile) {
  return ceil_div(visible, kFixedChunks ? chunk_tokens(visible) : tile);
}

/// Rows of an item.
template <auto C> QN_DEVICE i32 item_rows(const AttendParams& p, i32 queries, i32 head_tile) {
  return min_of(C.group_rows, (C.several != 0 ? queries : 1) * i32(p.group.value) - head_tile * C.group_rows);
}

/// Where a row of an item stands in q and out.
template <auto C> QN_DEVICE RowPlace row_place(const AttendParams& p, i32 head_kv, i32 head_tile, i32 row) {
  if constexpr (C.several != 0) return place_of_row(p, head_kv, head_tile * C.group_rows + row);
  else return {0, head_kv * i32(p.group.value) + head_tile * C.group_rows + row};
}

template <auto C> QN_DEVICE dtype_t<C.out_dtype>* out_row(const AttendParams& p, i64 token, i32 head_q) {
  return reinterpret_cast<dtype_t<C.out_dtype>*>(out_of(p, token, head_q));
}

/// Requests whose queries see nothing, dealt to the blocks: out is 0, and the sink alone is in the lse. By the first kThreads threads.
template <auto C, i32 kThreads> QN_DEVICE void write_blind_rows(const AttendParams& p) {
  const i32 heads_q = p.heads_kv * i32(p.group.value);
  QN_NO_UNROLL
  for (i64 index = blockIdx.x; index < p.batch; index += gridDim.x) {
    const Request r = request_of<C>(p, index);
    if (!is_ours<C>(p, r) || visible_keys<C>(p, r) > 0) continue;
    const i32 rows = r.queries.count * heads_q;
    QN_NO_UNROLL
    for (i32 i = i32(threadIdx.x); i < rows * C.head_dim; i += kThreads) {
      const i32 row = i / C.head_dim;
      ptx::st_global<u16>(out_row<C>(p, r.queries.begin + row / heads_q, row % heads_q) + i % C.head_dim, u16(0));
    }
    QN_NO_UNROLL
    for (i32 i = i32(threadIdx.x); p.out_lse && i < rows; i += kThreads)
      store_lse(p, r.queries.begin + i / heads_q, i % heads_q, finish_row(p, empty_softmax(), i % heads_q, 0.f).lse);
  }
}

/// Lengths and pages may be what a kernel before writes, so before the wait they are only fetched into the L2: each thread of
/// the grid takes 32 bytes. (The pages of a request in CSR form stand at a place that only the wait makes known.)
template <auto C> QN_DEVICE void fetch_tables(const AttendParams& p) {
  constexpr i32 kEntries = 8;
  const i64 thread = i64(blockIdx.x) * C.threads + threadIdx.x;
  const i64 at = thread * kEntries;
  if (at < p.batch) {
    if constexpr (C.several != 0) ptx::prefetch_l2(p.q_indptr + at);
    if constexpr (C.places == KeyPlaces::page_indices) ptx::prefetch_l2(p.kv_indptr + at), ptx::prefetch_l2(p.last_page_len + at);
    else ptx::prefetch_l2(static_cast<const u8*>(p.seq_lens) + at * size_of(C.lens_dtype));
  }
  if constexpr (C.places == KeyPlaces::page_table) {
    const i32 runs = ceil_div(i32(quotient(u32(p.capacity), p.page_size)), kEntries);  // of a row of the table
    if (runs > 0 && thread / runs < p.batch) ptx::prefetch_l2(p.pages + thread / runs * p.table_row + thread % runs * kEntries);
  }
}

}  // namespace quern::attention
