// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What a block of prefill_mma works on: which rows of which request, and where that request's keys lie. No tensor is read or written
// beyond its end, whatever the index tensors hold.
#pragma once
#include "quern/ops/attention/prefill/spec.h"
#include "quern/ops/attention/tile_rows.cuh"

namespace quern::attention {

/// Query tokens of a request: [begin, begin + count).
struct QueryTokens {
  i64 begin;
  i32 count;
};
template <PrefillConfig C> QN_DEVICE QueryTokens query_tokens(const PrefillParams& p, i64 request) {
  if (p.q_indptr == nullptr) return {request, 1};
  const i64 begin = min_of<i64>(max_of<i64>(ptx::ld_global<i32>(p.q_indptr + request), 0), p.tokens);
  const i64 end = min_of<i64>(ptx::ld_global<i32>(p.q_indptr + request + 1), p.tokens);
  return {begin, i32(max_of<i64>(end - begin, 0))};
}
/// Row tiles of a request's query tokens for one KV head.
template <PrefillConfig C> QN_DEVICE u32 row_tiles_of(const PrefillParams& p, i32 queries) {
  if (C.leave_few_rows != 0 && has_few_rows(queries, p.group.value)) return 0;
  return u32(ceil_div<i64>(i64(queries) * p.group.value, block_rows(C)));
}

/// Keys of a request.
struct Keys {
  i32 length;         // as told: query positions follow from it
  i32 end;            // keys from here on are never read
  i64 first;          // contiguous: row of key 0
  const i32* pages;   // else its entries of the page table
};
template <PrefillConfig C> QN_DEVICE Keys keys_of(const PrefillParams& p, i64 request) {
  i64 length;
  Keys keys{0, 0, 0, nullptr};
  i64 most = p.capacity;
  if constexpr (C.places == KeyPlaces::contiguous) {
    keys.first = ptx::ld_global<i32>(p.kv_indptr + request);
    length = i64(ptx::ld_global<i32>(p.kv_indptr + request + 1)) - keys.first;
    most = keys.first < 0 ? 0 : min_of<i64>(most, max_of<i64>(p.rows_of_keys - keys.first, 0));
  } else if constexpr (C.places == KeyPlaces::page_table) {
    length = C.lens_dtype == DType::i64 ? ptx::ld_global<i64>(static_cast<const i64*>(p.seq_lens) + request)
                                        : i64(ptx::ld_global<i32>(static_cast<const i32*>(p.seq_lens) + request));
    keys.pages = p.pages + request * p.table_row;
  } else {
    const i64 begin = ptx::ld_global<i32>(p.kv_indptr + request), count = i64(ptx::ld_global<i32>(p.kv_indptr + request + 1)) - begin;
    length = 0;
    if (count > 0) length = (count - 1) * p.page_size.value + min_of(max_of(ptx::ld_global<i32>(p.last_page_len + request), 1), i32(p.page_size.value));
    keys.pages = p.pages + begin;
  }
  keys.length = i32(min_of<i64>(max_of<i64>(length, 0), kNoWindow));
  keys.end = i32(min_of<i64>(keys.length, most));
  return keys;
}

/// The rows of one block: `rows` of them from row `first_row` of a request and KV head. Row r is query token r / group and query head r % group.
struct RowTile {
  i64 request;
  i32 head_kv;
  QueryTokens queries;
  Keys keys;
  i32 first_row, rows;
  i32 begin, end;  // keys that some row sees
  f32 scale;       // of logits, without q's
};

/// Visible keys of a query token, [first, last].
struct Span {
  i32 first, last;
};
QN_DEVICE Span visible_span(const PrefillParams& p, const QueryTokens& queries, const Keys& keys, i32 query) {
  const i32 position = keys.length - queries.count + query;
  return {max_of(0, position - p.window_left), i32(min_of<i64>(keys.end - 1, i64(position) + p.window_right))};
}

QN_DEVICE f32 scale_at(const ScaleTensor& scale, i64 row, i64 head) {
  return scale.data == nullptr ? f32(1.f) : ptx::ld_global<f32>(scale.data + row * scale.strides[0] + head * scale.strides[1]);
}

/// The block's tile, or no rows. Later rows of a request see more keys where attention is causal, so tiles are taken from the last.
template <PrefillConfig C> QN_DEVICE RowTile find_row_tile(const PrefillParams& p, u32* scratch) {
  RowTile tile{};
  tile.head_kv = i32(blockIdx.x % u32(p.heads_kv));
  const u32 target = u32(p.row_tiles - 1 - blockIdx.x / u32(p.heads_kv));
  u32* found = scratch + 8;
  u32 base = 0;
  for (i64 first = 0; first < p.batch; first += C.threads) {
    const i64 request = first + threadIdx.x;
    const u32 tiles = request < p.batch ? row_tiles_of<C>(p, query_tokens<C>(p, request).count) : 0;
    u32 total;
    const u32 end = base + block_prefix_sum<C.threads>(tiles, scratch, total);
    if (target >= base + total) {
      base += total;
      continue;
    }
    if (end - tiles <= target && target < end) found[0] = u32(threadIdx.x), found[1] = end - tiles;
    ptx::sync_block();
    tile.request = first + found[0];
    tile.queries = query_tokens<C>(p, tile.request);
    tile.keys = keys_of<C>(p, tile.request);
    tile.first_row = i32(target - found[1]) * block_rows(C);
    tile.rows = i32(min_of<i64>(block_rows(C), i64(tile.queries.count) * p.group.value - tile.first_row));
    const i32 last = i32(quotient(u32(tile.first_row + tile.rows - 1), p.group));
    tile.begin = visible_span(p, tile.queries, tile.keys, i32(quotient(u32(tile.first_row), p.group))).first;
    tile.end = visible_span(p, tile.queries, tile.keys, last).last + 1;
    tile.scale = f32(p.scale) * scale_at(p.k_scale, tile.request, tile.head_kv);
    return tile;
  }
  return tile;
}

}  // namespace quern::attention
