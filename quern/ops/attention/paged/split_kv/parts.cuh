// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What both kernels of split KV know: how a request's work is counted, and which rows an item has.
//
// Words: a request's rows are its query tokens times the query heads of a KV head, row r being token r / group and head r % group.
// An item is one request, KV head and tile of at most 16 rows; its units are consecutive runs of keys that some row sees;
// a part is what one block sums of an item: out / sum and lse, the shape that parts are merged in.
#pragma once
#include "quern/ops/attention/paged/split_kv/spec.h"
#include "quern/ops/attention/requests.cuh"

namespace quern::attention {

/// A request as both kernels see it.
struct Request {
  QueryTokens queries;
  Keys keys;
  i32 first;  // the first key that some query sees; from keys.end on: none does
};
/// C: the Config of either kernel.
template <auto C> QN_DEVICE Request request_of(const SplitKvParams& p, i64 index) {
  Request r;
  if constexpr (C.several != 0) r.queries = query_tokens(p, index);
  else r.queries = {index, 1};
  r.keys = keys_of<C>(p, index);
  r.first = max_of(0, r.keys.length - r.queries.count - p.window_left);
  return r;
}

/// Whether the request is one of split KV's.
template <auto C> QN_DEVICE bool is_ours(const SplitKvParams& p, const Request& r) {
  if constexpr (C.several != 0) return r.queries.count > 0 && has_few_rows(r.queries.count, p.group.value);
  return true;
}
/// Keys that some query sees.
template <auto C> QN_DEVICE i32 visible_keys(const SplitKvParams& p, const Request& r) { return is_ours<C>(p, r) ? max_of(0, r.keys.end - r.first) : 0; }

/// Units of one item of a request: chunks, or block tiles of `tile` tokens.
template <bool kFixedChunks> QN_DEVICE i32 units_of(i32 visible, i32 tile) {
  return ceil_div(visible, kFixedChunks ? chunk_tokens(visible) : tile);
}

/// Rows of an item.
template <auto C> QN_DEVICE i32 item_rows(const SplitKvParams& p, i32 queries, i32 head_tile) {
  return min_of(16, (C.several != 0 ? queries : 1) * i32(p.group.value) - head_tile * 16);
}

/// Where a row of an item stands in q and out.
template <auto C> QN_DEVICE RowPlace row_place(const SplitKvParams& p, i32 head_kv, i32 head_tile, i32 row) {
  if constexpr (C.several != 0) return place_of_row(p, head_kv, head_tile * 16 + row);
  else return {0, head_kv * i32(p.group.value) + head_tile * 16 + row};
}

template <auto C> QN_DEVICE dtype_t<C.out_dtype>* out_row(const SplitKvParams& p, i64 token, i32 head_q) { return reinterpret_cast<dtype_t<C.out_dtype>*>(out_of(p, token, head_q)); }

}  // namespace quern::attention
