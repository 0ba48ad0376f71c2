// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Items of work of prefill_sm90: a row tile of a request and KV head, and of its keys all or a part. One warp of a block finds them, and
// tells them to the block's other warps through shared memory.
//
// Parts. Where there are fewer row tiles than multiprocessors, or one that is far longer than the others, keys are cut into parts of as
// many tiles of keys as make all blocks end together (choose_part). A warp writes what it has of a row to memory, and the one that comes
// last adds up all parts of its rows, in ascending order (parts.cuh).
//
// Order. Items are numbered by the power of two of their length, the longest first, then by request, then from a request's last row tile,
// which sees most where attention is causal. A block takes the next number from a counter in memory, which is 0 when the kernel begins.
// Without a counter, for calls of few row tiles and without parts, block b of n takes number b, then 2 n - 1 - b: in turn from either side.
#pragma once
#include "quern/kit/pipeline.cuh"
#include "quern/kit/scan.cuh"
#include "quern/ops/attention/prefill/request.cuh"
#include "quern/ops/attention/prefill_sm90/spec.h"

namespace quern::attention {

/// A request's row tiles for each KV head, and the most tiles of keys that one of them sees.
struct RequestTiles {
  u32 row_tiles;
  i32 key_tiles;
};
template <PrefillSm90Config C> QN_DEVICE RequestTiles tiles_of_request(const PrefillSm90Params& p, i64 request) {
  if (request >= p.batch) return {0, 0};
  const QueryTokens queries = query_tokens(p, request);
  const u32 row_tiles = row_tiles_of<C>(p, queries.count);
  if (row_tiles == 0) return {0, 0};
  const Keys keys = keys_of<C>(p, request);
  const i32 begin = visible_span(p, queries, keys, 0).first, end = visible_span(p, queries, keys, queries.count - 1).last + 1;
  const i64 window =
      i64(p.window_left) + p.window_right + i64(quotient(u32(block_rows(C)), p.group)) + 2;  // keys that the rows of a tile see
  return {
      row_tiles,
      i32(max_of<i64>(0, min_of<i64>(ceil_div(end - begin / C.tile_tokens * C.tile_tokens, C.tile_tokens), window / C.tile_tokens + 2)))};
}

/// A request's items.
struct RequestItems {
  u32 row_tiles, parts, items;  // parts: of each row tile
  i32 part_tiles;               // tiles of keys of a part
};
/// Of parts of up to `most` tiles of keys; 0: row tiles are not cut.
QN_DEVICE RequestItems items_of(const RequestTiles& tiles, u32 heads, i32 most) {
  RequestItems r{tiles.row_tiles, 1, 0, max_of(tiles.key_tiles, 1)};
  if (most > 0 && r.part_tiles > most)
    r.part_tiles = ceil_div(r.part_tiles, ceil_div(r.part_tiles, most)), r.parts = u32(ceil_div(tiles.key_tiles, r.part_tiles));
  r.items = r.row_tiles * heads * r.parts;
  return r;
}
/// Items are taken by ascending rank, the longest first: 31 - floor(log2(tiles of keys of a part)).
QN_DEVICE u32 rank_of(const RequestItems& r) {
  u32 power = 0;
  QN_UNROLL
  for (u32 bit = 16; bit > 0; bit /= 2)
    if (u32(r.part_tiles) >> (power + bit) != 0) power += bit;
  return 31 - power;
}

constexpr u32 kMostItems = 0x7fffffff;

/// By a warp: the sum of value(request) over all requests, up to kMostItems.
template <class Value> QN_DEVICE u32 sum_of_requests(const PrefillSm90Params& p, const Value& value) {
  u32 sum = 0;
  for (i64 request = ptx::lane_id(); request < p.batch; request += 32) sum = min_of(sum + min_of(value(request), kMostItems), kMostItems);
  return ptx::shfl(warp_prefix_sum_upto(sum, kMostItems), 31);
}

/// By a warp: the part length, in tiles of keys, at which up to 32 requests end soonest, by the estimate (rounds of items) x (the longest
/// item). `share`: tiles of keys of each block if work could be cut at will. Each lane tries a length, from twice the share down to about
/// half of it.
template <PrefillSm90Config C> QN_DEVICE u32 best_part(const PrefillSm90Params& p, u32 share) {
  constexpr u32 kMostTime = (1u << 26) - 1;  // beside the lane in 32 bits
  const u32 lane = ptx::lane_id(), tried = max_of(u32(u64(share) * (128 - 3 * lane) / 64), u32(kLeastPart));
  const RequestTiles mine = tiles_of_request<C>(p, lane);
  u32 items = 0, longest = 0;
  for (int b = 0; b < int(p.batch); ++b) {
    const RequestItems r = items_of({ptx::shfl(mine.row_tiles, b), i32(ptx::shfl(u32(mine.key_tiles), b))}, u32(p.heads_kv), i32(tried));
    items = min_of(items + r.items, kMostItems);
    if (r.items > 0) longest = max_of(longest, u32(r.part_tiles));
  }
  const u64 time = u64(ceil_div(items, u32(gridDim.x))) * longest;
  u32 best = u32(min_of<u64>(time, kMostTime)) << 5 | lane;  // of equal times the longest parts
  QN_UNROLL
  for (int d = 16; d > 0; d /= 2) best = min_of(best, ptx::shfl_xor(best, d));
  return ptx::shfl(tried, int(best & 31));
}

/// By a warp: how many tiles of keys a part has at most; 0: row tiles are not cut.
template <PrefillSm90Config C> QN_DEVICE i32 choose_part(const PrefillSm90Params& p) {
  if constexpr (C.parts == 0) return 0;
  const u32 heads = u32(p.heads_kv);
  const u32 work = sum_of_requests(p, [&](i64 request) {
    const RequestTiles r = tiles_of_request<C>(p, request);
    return u32(min_of<u64>(u64(r.row_tiles) * heads * u32(r.key_tiles), kMostItems));
  });
  if (work == 0) return 0;
  const u32 share = ceil_div(work, u32(gridDim.x));
  u32 most = p.batch <= 32 ? best_part<C>(p, share) : max_of(share, u32(kLeastPart));
  // Parts need slots. There are enough for parts of at least the share; shorter ones may have to be longer
  while (most < u32(kNoWindow)) {
    const u32 slots = sum_of_requests(p, [&](i64 request) {
      const RequestItems r = items_of(tiles_of_request<C>(p, request), heads, i32(most));
      return r.parts > 1 ? r.items : 0;
    });
    if (slots <= u32(p.part_slots)) break;
    most *= 2;
  }
  return i32(most);
}

/// What the warp that finds items keeps.
struct Finder {
  i32 most;     // choose_part()
  u32 of_rank;  // lane l: items of ranks up to l
};
/// `ranks`: 32 words of shared memory.
template <PrefillSm90Config C> QN_DEVICE Finder begin_items(const PrefillSm90Params& p, u32* ranks) {
  Finder f{choose_part<C>(p), 0};
  ptx::st_shared<u32>(ranks + ptx::lane_id(), 0);
  ptx::sync_warp();
  for (i64 request = ptx::lane_id(); request < p.batch; request += 32) {
    const RequestItems r = items_of(tiles_of_request<C>(p, request), u32(p.heads_kv), f.most);
    if (r.items > 0) ptx::red_add_shared(ranks + rank_of(r), r.items);
  }
  ptx::sync_warp();
  f.of_rank = warp_prefix_sum(ptx::ld_shared<u32>(ranks + ptx::lane_id()));
  return f;
}
QN_DEVICE u32 count_items(const Finder& f) { return ptx::shfl(f.of_rank, 31); }

/// A row tile with the keys of one of its parts. `rows` 0: none.
struct Item {
  RowTile tile;
  i32 part, parts;
  i32 slot;  // of part 0, where there are several
};
/// By a warp: item `number`, below count_items(). A part that a row tile does not have, as it sees less than others of its request, has no
/// rows.
template <PrefillSm90Config C> QN_DEVICE Item find_item(const PrefillSm90Params& p, const Finder& f, u32 number) {
  const u32 heads = u32(p.heads_kv);
  const int rank = first_lane_above(f.of_rank, number);
  if (rank > 0) number -= ptx::shfl(f.of_rank, max_of(rank - 1, 0));
  u32 items = 0, slots = 0;  // of the requests before
  for (i64 first = 0; first < p.batch; first += 32) {
    const i64 request = first + ptx::lane_id();
    const RequestItems mine = items_of(tiles_of_request<C>(p, request), heads, f.most);
    const bool here = mine.items > 0 && rank_of(mine) == u32(rank);
    const u32 end = items + warp_prefix_sum(here ? mine.items : 0), slots_end = slots + warp_prefix_sum(mine.parts > 1 ? mine.items : 0);
    if (number >= ptx::shfl(end, 31)) {
      items = ptx::shfl(end, 31), slots = ptx::shfl(slots_end, 31);
      continue;
    }
    const int lane = first_lane_above(end, number);
    const u32 row_tiles = ptx::shfl(mine.row_tiles, lane), parts = ptx::shfl(mine.parts, lane), all = row_tiles * heads * parts;
    const i32 part_tokens = i32(ptx::shfl(u32(mine.part_tiles), lane)) * C.tile_tokens;
    const u32 in_request = number - (ptx::shfl(end, lane) - all), row_tile = row_tiles - 1 - in_request / (heads * parts),
              in_row_tile = in_request % (heads * parts), head = in_row_tile % heads;
    Item item{row_tile_of<C>(p, first + lane, i32(head), i32(row_tile) * block_rows(C)), i32(in_row_tile / heads), 1, 0};
    if (parts > 1) {
      const i32 begin = item.tile.begin / C.tile_tokens * C.tile_tokens;
      item.parts = max_of(1, ceil_div(item.tile.end - begin, part_tokens));
      item.slot = i32(ptx::shfl(slots_end, lane) - all + (row_tile * heads + head) * parts);
      if (item.part >= item.parts) item.tile.rows = 0;
      item.tile.begin = max_of(item.tile.begin, begin + item.part * part_tokens);
      item.tile.end = min_of(item.tile.end, begin + (item.part + 1) * part_tokens);
    }
    return item;
  }
  return {};
}

/// By a warp: the number of the item that the block takes in round `round`.
QN_DEVICE u32 item_number(const PrefillSm90Params& p, u32 round) {
  if (p.next_item == nullptr || round == 0) return round * gridDim.x + (round % 2 == 0 ? blockIdx.x : gridDim.x - 1 - blockIdx.x);
  u32 number = 0;
  if (ptx::lane_id() == 0) number = gridDim.x + ptx::atomic_add(p.next_item, 1u);
  return ptx::shfl(number, 0);
}

/// What the other warps need of an item. `rows` 0: there are no more.
QN_DEVICE void tell_item(const PrefillSm90Params& p, u8* told, const Item& item) {
  const RowTile& at = item.tile;
  const u64 pages = u64(at.keys.pages - p.pages);
  const i32 words[kToldWords] = {
      i32(at.request), at.head_kv, i32(at.queries.begin), at.queries.count, at.keys.length,   at.keys.end, at.first_row, at.rows,
      at.begin,        at.end,     i32(at.keys.first),    i32(u32(pages)),  i32(pages >> 32), item.part,   item.parts,   item.slot};
  QN_UNROLL
  for (int i = 0; i < kToldWords; i += 4)
    ptx::st_shared(told + 4 * i, u32x4{u32(words[i]), u32(words[i + 1]), u32(words[i + 2]), u32(words[i + 3])});
}
QN_DEVICE Item told_item(const PrefillSm90Params& p, const u8* told) {
  i32 words[kToldWords];
  QN_UNROLL
  for (int i = 0; i < kToldWords; i += 4) {
    const u32x4 four = ptx::ld_shared<u32x4>(told + 4 * i);
    words[i] = i32(four.x), words[i + 1] = i32(four.y), words[i + 2] = i32(four.z), words[i + 3] = i32(four.w);
  }
  Item item{};
  RowTile& at = item.tile;
  at.request = words[0], at.head_kv = words[1];
  at.queries = {words[2], words[3]};
  at.keys.length = words[4], at.keys.end = words[5];
  at.first_row = words[6], at.rows = words[7], at.begin = words[8], at.end = words[9];
  at.keys.first = words[10];
  at.keys.pages = p.pages + (u64(u32(words[11])) | u64(u32(words[12])) << 32);
  item.part = words[13], item.parts = words[14], item.slot = words[15];
  return item;
}
QN_DEVICE RowTile told_tile(const PrefillSm90Params& p, const u8* told) { return told_item(p, told).tile; }

/// The rows of a told tile that a warpgroup multiplies; none: rows <= 0.
QN_DEVICE RowTile rows_of_warpgroup(const PrefillSm90Params& p, const u8* told, u32 warpgroup) {
  RowTile at = told_tile(p, told);
  at.scale = f32(p.scale) * scale_at(p.k_scale, at.request, at.head_kv);
  at.first_row += 64 * i32(warpgroup);
  at.rows = min_of(64, at.rows - 64 * i32(warpgroup));
  return at;
}

}  // namespace quern::attention
