// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The first warpgroup of prefill_sm90: one warp finds row tiles and brings keys and values by TMA, three warps bring queries.
#pragma once
#include "quern/bricks/paged/boxes.cuh"
#include "quern/ops/attention/prefill/logits.cuh"
#include "quern/ops/attention/prefill_sm90/tiles.cuh"

namespace quern::attention {

constexpr u32 kQueryWarps = 3;

/// Addresses of the block's shared memory.
template <PrefillSm90Config C> QN_DEVICE u32 place_of_queries(u32 smem, u32 warpgroup) { return smem + prefill_sm90_smem(C).queries + warpgroup * u32(tile_bytes(query_tile(C))); }
template <PrefillSm90Config C> QN_DEVICE u32 place_of_keys(u32 smem, u32 stage) { return smem + prefill_sm90_smem(C).keys + stage * u32(round_up(tile_bytes(key_tile(C)), 1024)); }
template <PrefillSm90Config C> QN_DEVICE u32 place_of_values(u32 smem, u32 stage) { return smem + prefill_sm90_smem(C).values + stage * u32(round_up(tile_bytes(value_tile(C)), 1024)); }
template <PrefillSm90Config C> QN_DEVICE u32 key_ring(u32 smem) { return smem + prefill_sm90_smem(C).key_barriers; }
template <PrefillSm90Config C> QN_DEVICE u32 value_ring(u32 smem) { return smem + prefill_sm90_smem(C).value_barriers; }
template <PrefillSm90Config C> QN_DEVICE u32 tile_ring(u32 smem) { return smem + prefill_sm90_smem(C).tile_barriers; }
template <PrefillSm90Config C> QN_DEVICE u32 queries_full(u32 smem) { return smem + prefill_sm90_smem(C).query_barriers; }
template <PrefillSm90Config C> QN_DEVICE u32 queries_free(u32 smem) { return smem + prefill_sm90_smem(C).query_barriers + 8; }
template <PrefillSm90Config C> QN_DEVICE u32 edge_barrier(u32 smem) { return smem + prefill_sm90_smem(C).edge_barrier; }
template <PrefillSm90Config C> QN_DEVICE u8* told_words(u8* memory, u32 slot) { return memory + prefill_sm90_smem(C).told + slot * (4 * kTileWords); }

/// What the loading warp walks with.
template <PrefillSm90Config C> struct Loader {
  u8* memory;
  u32 smem;  // its address
  Producer<C.stages> keys, values;
  paged::BoxLane key_boxes, value_boxes;
  u32 edge_parity = 0;
};

/// By the loading warp: a tile of keys, or of values, goes to `to`; `full` has been told of it.
template <PrefillSm90Config C, paged::BoxTile T>
QN_DEVICE void load_tile(const PrefillSm90Params& p, const RowTile& tile, const paged::BoxLane& boxes, const TensorMap* map, u32 to, u32 full, i32 first) {
  if constexpr (C.places == KeyPlaces::contiguous) {
    paged::load_rows<T>(to, map, full, CachePolicy::evict_normal, i32(tile.keys.first) + first, tile.head_kv);
  } else {
    const paged::PageRow row{tile.keys.pages, p.page_size, p.last_page, p.boxes.no_page};
    const i32 page = paged::page_of_box(boxes, row, p.boxes.rows, first, tile.begin, tile.end);
    paged::load_pages<T>(to, map, full, CachePolicy::evict_normal, boxes, row, first, tile.head_kv, page);
  }
}

template <PrefillSm90Config C> QN_DEVICE void load_keys(const PrefillSm90Params& p, Loader<C>& load, const RowTile& tile, i32 first) {
  const u32 full = full_barrier<C.stages>(load.keys.barriers, load.keys.stage);
  if (ptx::lane_id() == 0) begin_fill(load.keys, u32(tile_bytes(key_tile(C))));
  ptx::sync_warp();
  load_tile<C, key_tile(C)>(p, tile, load.key_boxes, &p.boxes.k, place_of_keys<C>(load.smem, load.keys.stage), full, first);
  end_fill(load.keys);
}

/// A tile of values of which no row sees some: these become zeros, as a probability of 0 times what memory happens to hold could be NaN. TMA tells `edge` of the copies, and the warp the ring.
template <PrefillSm90Config C> QN_DEVICE void load_edge_values(const PrefillSm90Params& p, Loader<C>& load, const RowTile& tile, i32 first) {
  constexpr paged::BoxTile T = value_tile(C);
  constexpr i32 kWidth = column_bytes(T);
  const u32 stage = load.values.stage, edge = edge_barrier<C>(load.smem);
  if (ptx::lane_id() == 0) {
    ptx::mbarrier_wait(empty_barrier<C.stages>(load.values.barriers, stage), load.values.parity);
    ptx::mbarrier_arrive_expect_tx(edge, u32(tile_bytes(T)));
  }
  ptx::sync_warp();
  load_tile<C, T>(p, tile, load.value_boxes, &p.boxes.v, place_of_values<C>(load.smem, stage), edge, first);
  ptx::mbarrier_wait(edge, load.edge_parity);
  load.edge_parity ^= 1;
  u8* const values = load.memory + prefill_sm90_smem(C).values + stage * round_up(tile_bytes(T), 1024);
  const i32 begin = max_of(0, tile.begin - first), end = min_of(T.tokens, tile.end - first);  // rows that some row sees
  QN_NO_UNROLL
  for (i32 unit = i32(ptx::lane_id()); unit < tile_bytes(T) / 16; unit += 32) {
    const i32 row = unit % (T.tokens * (kWidth / 16)) / (kWidth / 16);  // a swizzle exchanges 16 bytes of a row
    if (row < begin || row >= end) ptx::st_shared(values + 16 * unit, u32x4{0, 0, 0, 0});
  }
  ptx::fence_proxy_async_shared();
  ptx::sync_warp();
  if (ptx::lane_id() == 0) ptx::mbarrier_arrive(full_barrier<C.stages>(load.values.barriers, stage));
  end_fill(load.values);
}

template <PrefillSm90Config C> QN_DEVICE void load_values(const PrefillSm90Params& p, Loader<C>& load, const RowTile& tile, i32 first) {
  if (first < tile.begin || first + C.tile_tokens > tile.end) return load_edge_values<C>(p, load, tile, first);
  const u32 full = full_barrier<C.stages>(load.values.barriers, load.values.stage);
  if (ptx::lane_id() == 0) begin_fill(load.values, u32(tile_bytes(value_tile(C))));
  ptx::sync_warp();
  load_tile<C, value_tile(C)>(p, tile, load.value_boxes, &p.boxes.v, place_of_values<C>(load.smem, load.values.stage), full, first);
  end_fill(load.values);
}

/// By one warp.
template <PrefillSm90Config C, class H> QN_DEVICE void load_keys_and_values(const PrefillSm90Params& p, u8* memory, u32 smem) {
  Loader<C> load{memory, smem, {key_ring<C>(smem)}, {value_ring<C>(smem)}, paged::box_lane<key_tile(C)>(max_of(p.boxes.rows, 1)), paged::box_lane<value_tile(C)>(max_of(p.boxes.rows, 1))};
  Producer<kToldTiles> tell{tile_ring<C>(smem)};
  const u32 row_tiles = count_row_tiles<C>(p), heads = u32(p.heads_kv), tiles = row_tiles * heads;
  for (u32 round = 0;; ++round) {
    const u32 number = tile_number(round);
    RowTile tile{};
    if (number < tiles) tile = row_tile_at<C>(p, row_tiles - 1 - number / heads, i32(number % heads));
    if (ptx::lane_id() == 0) {
      ptx::mbarrier_wait(empty_barrier<kToldTiles>(tell.barriers, tell.stage), tell.parity);
      tell_tile(told_words<C>(memory, tell.stage), tile);
      ptx::mbarrier_arrive(full_barrier<kToldTiles>(tell.barriers, tell.stage));
    }
    ptx::sync_warp();
    end_fill(tell);
    if (number >= tiles) return;
    i32 first = first_tile<C, H>(p, tile);
    if (first < tile.end) load_keys<C>(p, load, tile, first);
    while (first < tile.end) {
      const i32 next = next_tile<C, H>(p, tile, first + C.tile_tokens);
      if (next < tile.end) load_keys<C>(p, load, tile, next);
      load_values<C>(p, load, tile, first);
      first = next;
    }
  }
}

/// By kQueryWarps warps, of which this is warp `warp`: rows of q of each tile, zeros where it has none.
template <PrefillSm90Config C, class H> QN_DEVICE void load_queries(const PrefillSm90Params& p, u8* memory, u32 smem, u32 warp) {
  constexpr paged::BoxTile T = query_tile(C);
  constexpr u32 kWidth = u32(column_bytes(T)), kUnits = u32(row_bytes(T)) / 16;
  Consumer<kToldTiles> told{tile_ring<C>(smem)};
  u32 parity = 1;
  for (;;) {
    begin_read(told);
    const RowTile tile = told_tile(p, told_words<C>(memory, told.stage));
    end_read(told);
    if (tile.rows <= 0) return;
    if (first_tile<C, H>(p, tile) >= tile.end) continue;
    ptx::mbarrier_wait(queries_free<C>(smem), parity);
    parity ^= 1;
    QN_NO_UNROLL
    for (u32 row = warp * 4 + ptx::lane_id() / 8; row < u32(block_rows(C)); row += 4 * kQueryWarps) {
      const bool read = i32(row) < tile.rows;
      const RowPlace place = place_of_row(p, tile.head_kv, tile.first_row + (read ? i32(row) : 0));
      const u8* from = p.q + (tile.queries.begin + place.query) * p.q_token + i64(place.head_q) * p.q_head;
      const u32 to = place_of_queries<C>(smem, row / 64);
      QN_UNROLL
      for (u32 unit = ptx::lane_id() % 8; unit < kUnits; unit += 8) {
        const u32 line = offset_in_tile(T, row % 64, unit * 16);
        ptx::cp_async_cg(to + (line ^ (line >> 7 & (kWidth / 16 - 1)) << 4), from + unit * 16, read ? 16 : 0);
      }
    }
    ptx::cp_async_commit();
    ptx::cp_async_wait<0>();
    ptx::fence_proxy_async_shared();
    ptx::sync_warp();
    if (ptx::lane_id() == 0) ptx::mbarrier_arrive(queries_full<C>(smem));
  }
}

}  // namespace quern::attention
