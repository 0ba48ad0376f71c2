// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What a block of a kernel for many rows works on: which rows of which request, and which keys those see.
#pragma once
#include "quern/ops/attention/prefill/spec.h"
#include "quern/ops/attention/requests.cuh"

namespace quern::attention {

/// Row tiles of a request's query tokens for one KV head.
template <auto C> QN_DEVICE u32 row_tiles_of(const AttendParams& p, i32 queries) {
  if (C.leave_few_rows != 0 && has_few_rows(queries, p.group.value, C.leave_few_rows)) return 0;
  return u32(ceil_div<i64>(i64(queries) * p.group.value, block_rows(C)));
}

/// The rows of one block: `rows` of them from row `first_row` of a request and KV head. Row r is query token r / group and query head r %
/// group.
struct RowTile {
  i64 request;
  i32 head_kv;
  QueryTokens queries;
  Keys keys;
  i32 first_row, rows;
  i32 begin, end;  // keys that some row sees
  f32 scale;       // of logits, without q's
};

/// The tile of a request and KV head from row `first_row` on.
template <auto C> QN_DEVICE RowTile row_tile_of(const AttendParams& p, i64 request, i32 head_kv, i32 first_row) {
  RowTile tile{};
  tile.request = request;
  tile.head_kv = head_kv;
  tile.queries = query_tokens(p, request);
  tile.keys = keys_of<C>(p, request);
  tile.first_row = first_row;
  tile.rows = i32(min_of<i64>(block_rows(C), i64(tile.queries.count) * p.group.value - first_row));
  const i32 last = i32(quotient(u32(first_row + tile.rows - 1), p.group));
  tile.begin = visible_span(p, tile.queries, tile.keys, i32(quotient(u32(first_row), p.group))).first;
  tile.end = visible_span(p, tile.queries, tile.keys, last).last + 1;
  tile.scale = f32(p.scale) * scale_at(p.k_scale, request, head_kv);
  return tile;
}

/// The block's tile, or no rows. Later rows of a request see more keys where attention is causal, so tiles are taken from the last.
template <PrefillConfig C> QN_DEVICE RowTile find_row_tile(const PrefillParams& p, u32* scratch) {
  const u32 target = u32(p.row_tiles - 1 - blockIdx.x / u32(p.heads_kv));
  u32* found = scratch + 8;
  u32 base = 0;
  for (i64 first = 0; first < p.batch; first += C.threads) {
    const i64 request = first + threadIdx.x;
    const u32 tiles = request < p.batch ? row_tiles_of<C>(p, query_tokens(p, request).count) : 0;
    u32 total;
    const u32 end = base + block_prefix_sum<C.threads>(tiles, scratch, total);
    if (target >= base + total) {
      base += total;
      continue;
    }
    if (end - tiles <= target && target < end) found[0] = u32(threadIdx.x), found[1] = end - tiles;
    ptx::sync_block();
    return row_tile_of<C>(p, first + found[0], i32(blockIdx.x % u32(p.heads_kv)), i32(target - found[1]) * block_rows(C));
  }
  return {};
}

}  // namespace quern::attention
