// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What a block of prefill_mma works on: which rows of which request, and which keys those see.
#pragma once
#include "quern/ops/attention/prefill/spec.h"
#include "quern/ops/attention/requests.cuh"

namespace quern::attention {

/// Row tiles of a request's query tokens for one KV head.
template <PrefillConfig C> QN_DEVICE u32 row_tiles_of(const PrefillParams& p, i32 queries) {
  if (C.leave_few_rows != 0 && has_few_rows(queries, p.group.value)) return 0;
  return u32(ceil_div<i64>(i64(queries) * p.group.value, block_rows(C)));
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

/// The block's tile, or no rows. Later rows of a request see more keys where attention is causal, so tiles are taken from the last.
template <PrefillConfig C> QN_DEVICE RowTile find_row_tile(const PrefillParams& p, u32* scratch) {
  RowTile tile{};
  tile.head_kv = i32(blockIdx.x % u32(p.heads_kv));
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
    tile.request = first + found[0];
    tile.queries = query_tokens(p, tile.request);
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
