// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// How the work of a call is dealt to the blocks. Units of 64 keys, or chunks, of all requests are numbered in the order (request, KV head,
// tile of rows, key), and a block takes an equal run of them. To begin an item and to end it costs a block the time of several units. So
// each item is numbered with a few units more, in front of its first one. They have no keys: a block whose run has many short items just
// gets fewer keys, and ends when the others do. Both roles of a block walk over its run, segment by segment: the part of one item.
#pragma once
#include "quern/bricks/paged/boxes.cuh"
#include "quern/kit/scan.cuh"
#include "quern/ops/attention/paged/few_rows_sm90/spec.h"
#include "quern/ops/attention/paged/split_kv/parts.cuh"

namespace quern::attention {

/// How many items and units a request has.
struct RequestWork {
  i32 begin;      // key where its first tile begins, which a box does too
  i32 units;      // of an item
  i32 row_tiles;  // items of a KV head
};
template <FewRowsConfig C> QN_DEVICE RequestWork work_of(const FewRowsParams& p, const Request& r) {
  if (visible_keys<C>(p, r) == 0) return {0, 0, 1};
  const i32 begin = r.first / p.boxes.rows * p.boxes.rows;
  return {begin, units_of < C.fixed_chunks != 0 > (r.keys.end - begin, kTileTokens),
          ceil_div(r.queries.count * i32(p.group.value), C.group_rows)};
}
/// What an item costs beside its units, in units. Derived from kernel times of FP8 on an H200, at 1.75 GHz: a tile took a block 1200 clocks
/// in long items; 15 items of 16 tiles took it 4300 clocks each beside that, and in items of few tiles warpgroups wait for each other.
template <FewRowsConfig C> constexpr i32 kItemUnits = C.fixed_chunks != 0 ? 0 : has_fp8_keys(C) ? 6 : 3;

/// Units of a request's items for one KV head, each with `more` units without keys.
template <FewRowsConfig C> QN_DEVICE u32 units_of_head(const FewRowsParams& p, i64 request, i32 more) {
  const RequestWork w = work_of<C>(p, request_of<C>(p, request));
  return w.units == 0 ? 0 : u32(w.units + more) * u32(w.row_tiles);
}

/// Where a block is in its run of units, [at, end).
struct Walk {
  i64 at, end, share;
  i64 request_begin;  // first unit of the request in hand
  i32 request;
  i32 more;  // units without keys in front of each item
};

/// By the whole block. Lengths are read by all blocks alike, 4 bytes a request: once where each thread has one, else again to find the
/// first request.
template <FewRowsConfig C> QN_DEVICE Walk start_walk(const FewRowsParams& p, u32* scratch) {
  u32 here, total, end, base = 0;
  const auto count = [&](i32 more) {
    here = 0;
    QN_NO_UNROLL
    for (i64 request = threadIdx.x; request < p.batch; request += C.threads) here += units_of_head<C>(p, request, more);
    end = block_prefix_sum<C.threads>(here, scratch, total);
  };
  count(0);
  // At most an eighth of a block's units: where blocks have few, the time is that of a share rounded up, which units without keys would
  // make longer
  i32 more = 0;
  if (kItemUnits<C> > 0 && total < 1u << 28) more = i32(min_of<i64>(kItemUnits<C>, i64(total) * p.heads_kv / (8 * i64(gridDim.x))));
  if (more > 0) count(more);
  const i64 units = i64(total) * p.heads_kv, share = max_of<i64>(p.min_share, ceil_div<i64>(units, gridDim.x));
  Walk walk{min_of<i64>(units, i64(blockIdx.x) * share), 0, share, 0, 0, more};
  walk.end = min_of<i64>(units, walk.at + share);
  if (walk.at == walk.end) return walk;
  // The request that the first unit belongs to
  const u32 target = u32(walk.at / p.heads_kv);
  u32* found = scratch + 16;
  for (i64 first = 0;; first += C.threads) {
    u32 sum = total;
    if (p.batch > C.threads) {
      const i64 request = first + threadIdx.x;
      here = request < p.batch ? units_of_head<C>(p, request, more) : 0;
      end = base + block_prefix_sum<C.threads>(here, scratch, sum);
    }
    if (target < base + sum) {
      if (end - here <= target && target < end) found[0] = u32(threadIdx.x), found[1] = end - here;
      ptx::sync_block();
      walk.request = i32(first + found[0]), walk.request_begin = i64(found[1]) * p.heads_kv;
      return walk;
    }
    base += sum;
  }
}

/// A run of keys of one item that this block sums.
struct Segment {
  i64 request;
  i32 head_kv, head_tile;  // head_tile: of rows
  i32 rows;
  i32 begin, end;  // keys; begin is that of a box
  QueryTokens queries;
  Keys keys;
  i32 first;       // the first key that some query of the request sees
  i64 slot;        // where the part goes; -1: the item is complete, its output is written
  i64 first_slot;  // of the item's parts, and how many there are
  i32 parts;
  i32 blocks;   // that have parts of the item
  i32 counter;  // the first of them
  bool last;    // of this block's parts of the item
};
/// Slot of part k of an item: in order where chunks are fixed; else two a block, the second for the item that begins in it.
template <FewRowsConfig C> QN_DEVICE i64 part_slot(const Segment& s, i32 k) {
  if constexpr (C.fixed_chunks != 0) return s.first_slot + k;
  else return s.first_slot + (k == 0 ? 0 : 2 * k - 1);
}

template <FewRowsConfig C> QN_DEVICE bool next_segment(const FewRowsParams& p, Walk& walk, Segment& s) {
  while (walk.at < walk.end) {
    const Request r = request_of<C>(p, walk.request);
    const RequestWork w = work_of<C>(p, r);
    const i32 of_item = w.units == 0 ? 0 : w.units + walk.more;
    const i64 units = i64(of_item) * w.row_tiles * p.heads_kv;
    if (walk.at >= walk.request_begin + units) {
      walk.request_begin += units;
      ++walk.request;
      continue;
    }
    const i64 inside = walk.at - walk.request_begin, item = inside / of_item;
    const i32 place = i32(inside - item * of_item), unit = max_of(0, place - walk.more);
    const i64 item_begin = walk.at - place, item_end = item_begin + of_item;
    s.request = walk.request, s.queries = r.queries, s.keys = r.keys, s.first = r.first;
    s.head_kv = i32(item) / w.row_tiles, s.head_tile = i32(item) % w.row_tiles;
    s.rows = item_rows<C>(p, r.queries.count, s.head_tile);
    const i32 first_block = i32((item_begin + walk.more) / walk.share), last_block = i32((item_end - 1) / walk.share);
    s.counter = first_block, s.blocks = last_block - first_block + 1;
    i32 taken;
    if constexpr (C.fixed_chunks != 0) {
      taken = 1;
      const i32 chunk = chunk_tokens(r.keys.end - w.begin);
      s.begin = w.begin + unit * chunk, s.end = min_of(r.keys.end, s.begin + chunk);
      s.parts = w.units;
      s.first_slot = ((s.request * p.heads_kv + s.head_kv) * p.row_tiles + s.head_tile) * p.max_splits;
      s.slot = s.parts > 1 ? s.first_slot + unit : -1;
    } else {
      taken = i32(min_of<i64>(of_item - place, walk.end - walk.at));
      const i32 units_end = place + taken - walk.more;
      if (units_end <= 0) {  // the item begins in the next block
        walk.at += taken;
        continue;
      }
      s.begin = w.begin + unit * kTileTokens, s.end = min_of(r.keys.end, w.begin + units_end * kTileTokens);
      s.parts = s.blocks;
      s.first_slot = 2 * i64(first_block) + 1;
      s.slot = s.parts > 1 ? part_slot<C>(s, i32(blockIdx.x) - first_block) : -1;
    }
    walk.at += taken;
    s.last = walk.at == item_end || walk.at == walk.end;
    return true;
  }
  return false;
}

}  // namespace quern::attention
