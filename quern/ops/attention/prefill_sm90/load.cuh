// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The first warpgroup of prefill_sm90: warp 0 finds items (tiles.cuh), warp 1 brings queries. Of warps 2 and 3
//   by TMA   one brings keys and values, and one clears values that no row sees
//   gather   both bring keys and values, row by row
#pragma once
#include "quern/bricks/paged/boxes.cuh"
#include "quern/ops/attention/prefill/logits.cuh"
#include "quern/ops/attention/prefill_sm90/tiles.cuh"

namespace quern::attention {

/// Addresses of the block's shared memory.
template <PrefillSm90Config C> QN_DEVICE u32 place_of_queries(u32 smem, u32 warpgroup) { return smem + prefill_sm90_smem(C).queries + warpgroup * u32(tile_bytes(query_tile(C))); }
template <PrefillSm90Config C> QN_DEVICE u32 place_of_keys(u32 smem, u32 stage) { return smem + prefill_sm90_smem(C).keys + stage * u32(round_up(tile_bytes(key_tile(C)), 1024)); }
template <PrefillSm90Config C> QN_DEVICE u32 place_of_values(u32 smem, u32 stage) { return smem + prefill_sm90_smem(C).values + stage * u32(round_up(tile_bytes(value_tile(C)), 1024)); }
template <PrefillSm90Config C> QN_DEVICE u32 key_ring(u32 smem) { return smem + prefill_sm90_smem(C).key_barriers; }
template <PrefillSm90Config C> QN_DEVICE u32 value_ring(u32 smem) { return smem + prefill_sm90_smem(C).value_barriers; }
template <PrefillSm90Config C> QN_DEVICE u32 item_ring(u32 smem) { return smem + prefill_sm90_smem(C).item_barriers; }
template <PrefillSm90Config C> QN_DEVICE u32 queries_full(u32 smem) { return smem + prefill_sm90_smem(C).query_barriers; }
template <PrefillSm90Config C> QN_DEVICE u32 queries_free(u32 smem) { return smem + prefill_sm90_smem(C).query_barriers + 8; }
template <PrefillSm90Config C> QN_DEVICE u32 edge_barrier(u32 smem, u32 stage) { return smem + prefill_sm90_smem(C).edge_barriers + 8 * stage; }
template <PrefillSm90Config C> QN_DEVICE u8* told_words(u8* memory, u32 slot) { return memory + prefill_sm90_smem(C).told + slot * (4 * kToldWords); }

/// By one warp: items are told to the others, the next one when one has ended. So a block claims no more than it soon begins.
template <PrefillSm90Config C> QN_DEVICE void find_items(const PrefillSm90Params& p, u8* memory, u32 smem) {
  Producer<kToldItems> tell{item_ring<C>(smem)};
  const Finder finder = begin_items<C>(p, reinterpret_cast<u32*>(memory + prefill_sm90_smem(C).ranks));
  const u32 count = count_items(finder);
  u32 round = 0;
  for (;;) {
    ptx::mbarrier_wait(empty_barrier<kToldItems>(tell.barriers, tell.stage), tell.parity);
    Item item{};
    while (item.tile.rows <= 0) {
      const u32 number = item_number(p, round++);
      if (number >= count) break;
      item = find_item<C>(p, finder, number);
    }
    ptx::sync_warp();
    if (ptx::lane_id() == 0) {
      tell_item(p, told_words<C>(memory, tell.stage), item);
      ptx::mbarrier_arrive(full_barrier<kToldItems>(tell.barriers, tell.stage));
    }
    if (item.tile.rows <= 0) return;
    end_fill(tell);
  }
}

/// The keys of a row tile, as the loading warp walks over them: `now` is the next tile of values, `next` the one behind it. Entries of the page table are read two tiles ahead.
struct KeyWalk {
  i32 head_kv, begin, end;
  i32 contiguous;    // row of key 0
  const i32* pages;
  i32 now, next;
  i32 page_now, page_next;
};

/// What the loading warp keeps.
template <PrefillSm90Config C> struct Loader {
  u32 smem;
  Producer<C.stages> keys, values;
  paged::BoxLane key_boxes, value_boxes;
};

/// Where the calling lane's boxes of a tile of keys lie.
template <PrefillSm90Config C> QN_DEVICE paged::PageRow page_row(const PrefillSm90Params& p, const KeyWalk& walk) { return {walk.pages, p.page_size, p.last_page, p.boxes.no_page}; }
template <PrefillSm90Config C> QN_DEVICE i32 page_of(const PrefillSm90Params& p, const Loader<C>& load, const KeyWalk& walk, i32 first) {
  if constexpr (C.places == KeyPlaces::contiguous) return 0;
  else return paged::page_of_box(load.key_boxes, page_row<C>(p, walk), p.boxes.rows, first, walk.begin, walk.end);
}

/// The tile of keys behind `first` that some row sees, or one behind the last. `told`: of the row tile.
template <PrefillSm90Config C, class H> QN_DEVICE i32 tile_behind(const PrefillSm90Params& p, const u8* told, i32 first) {
  first += C.tile_tokens;
  if constexpr (has_tile<H>) first = next_tile<C, H>(p, told_tile(p, told), first);
  return first;
}

/// By the loading warp: the tile of keys, or of values, from key `first` on goes to `to`; `full` has been told of it.
template <PrefillSm90Config C, paged::BoxTile T>
QN_DEVICE void load_tile(const PrefillSm90Params& p, const KeyWalk& walk, const paged::BoxLane& boxes, const TensorMap* map, u32 to, u32 full, i32 first, i32 page) {
  if constexpr (C.places == KeyPlaces::contiguous) paged::load_rows<T>(to, map, full, CachePolicy::evict_normal, walk.contiguous + first, walk.head_kv);
  else paged::load_pages<T>(to, map, full, CachePolicy::evict_normal, boxes, page_row<C>(p, walk), first, walk.head_kv, page);
}

template <PrefillSm90Config C> QN_DEVICE void load_keys(const PrefillSm90Params& p, Loader<C>& load, const KeyWalk& walk, i32 first, i32 page) {
  const u32 full = full_barrier<C.stages>(load.keys.barriers, load.keys.stage);
  if (ptx::lane_id() == 0) begin_fill(load.keys, u32(tile_bytes(key_tile(C))));
  ptx::sync_warp();
  load_tile<C, key_tile(C)>(p, walk, load.key_boxes, &p.boxes.k, place_of_keys<C>(load.smem, load.keys.stage), full, first, page);
  end_fill(load.keys);
}

/// Whether a tile of values has some that no row sees. They become zeros (clear_values), as a probability of 0 times what memory happens to hold could be NaN.
template <PrefillSm90Config C> QN_DEVICE bool is_edge(i32 first, i32 begin, i32 end) { return first < begin || first + C.tile_tokens > end; }

template <PrefillSm90Config C> QN_DEVICE void load_values(const PrefillSm90Params& p, Loader<C>& load, const KeyWalk& walk, i32 first, i32 page) {
  const u32 stage = load.values.stage;
  const u32 full = is_edge<C>(first, walk.begin, walk.end) ? edge_barrier<C>(load.smem, stage) : full_barrier<C.stages>(load.values.barriers, stage);
  if (ptx::lane_id() == 0) {
    ptx::mbarrier_wait(empty_barrier<C.stages>(load.values.barriers, stage), load.values.parity);
    ptx::mbarrier_arrive_expect_tx(full, u32(tile_bytes(value_tile(C))));
  }
  ptx::sync_warp();
  load_tile<C, value_tile(C)>(p, walk, load.value_boxes, &p.boxes.v, place_of_values<C>(load.smem, stage), full, first, page);
  end_fill(load.values);
}

/// By one warp.
template <PrefillSm90Config C, class H> QN_DEVICE void load_keys_and_values(const PrefillSm90Params& p, u8* memory, u32 smem) {
  Loader<C> load{smem, {key_ring<C>(smem)}, {value_ring<C>(smem)}, paged::box_lane<key_tile(C)>(max_of(p.boxes.rows, 1)), paged::box_lane<value_tile(C)>(max_of(p.boxes.rows, 1))};
  Consumer<kToldItems> told{item_ring<C>(smem)};
  for (;;) {
    begin_read(told);
    const u8* const words = told_words<C>(memory, told.stage);
    KeyWalk walk;
    {
      const RowTile tile = told_tile(p, words);
      if (tile.rows <= 0) return;
      walk = {tile.head_kv, tile.begin, tile.end, i32(tile.keys.first), tile.keys.pages, first_tile<C, H>(p, tile), 0, 0, 0};
    }
    walk.next = tile_behind<C, H>(p, words, walk.now);
    walk.page_now = page_of<C>(p, load, walk, walk.now), walk.page_next = page_of<C>(p, load, walk, walk.next);
    if (walk.now < walk.end) load_keys<C>(p, load, walk, walk.now, walk.page_now);
    QN_NO_UNROLL
    while (walk.now < walk.end) {
      const i32 after = walk.next < walk.end ? tile_behind<C, H>(p, words, walk.next) : walk.next, page_after = page_of<C>(p, load, walk, after);
      if (walk.next < walk.end) load_keys<C>(p, load, walk, walk.next, walk.page_next);
      load_values<C>(p, load, walk, walk.now, walk.page_now);
      walk.now = walk.next, walk.next = after;
      walk.page_now = walk.page_next, walk.page_next = page_after;
    }
    end_read(told);
  }
}

/// By a warp: zeros for the rows [from, to) of a tile of values.
template <PrefillSm90Config C> QN_DEVICE void clear_rows_of(u8* values, i32 from, i32 to) {
  constexpr paged::BoxTile T = value_tile(C);
  constexpr i32 kUnits = column_bytes(T) / 16;  // of a row in a column; a swizzle exchanges them
  QN_NO_UNROLL
  for (i32 row = from + i32(ptx::lane_id()) / kUnits; row < to; row += 32 / kUnits) {
    QN_UNROLL
    for (i32 column = 0; column < columns_of(T); ++column)
      ptx::st_shared(values + (column * T.tokens + row) * column_bytes(T) + 16 * (i32(ptx::lane_id()) % kUnits), u32x4{0, 0, 0, 0});
  }
}

/// By one warp: in tiles of values at the ends of what a row tile sees, zeros for the others. TMA tells the stage's edge barrier of the copies, and the warp the ring.
template <PrefillSm90Config C, class H> QN_DEVICE void clear_values(const PrefillSm90Params& p, u8* memory, u32 smem) {
  Consumer<kToldItems> told{item_ring<C>(smem)};
  Consumer<C.stages> values{value_ring<C>(smem)};
  u32 parities = 0;  // a bit a stage: of the wait for its copies
  for (;;) {
    begin_read(told);
    const RowTile tile = told_tile(p, told_words<C>(memory, told.stage));
    end_read(told);
    if (tile.rows <= 0) return;
    QN_NO_UNROLL
    for (i32 first = first_tile<C, H>(p, tile); first < tile.end; first = next_tile<C, H>(p, tile, first + C.tile_tokens)) {
      if (is_edge<C>(first, tile.begin, tile.end)) {
        ptx::mbarrier_wait(edge_barrier<C>(smem, values.stage), parities >> values.stage & 1);
        parities ^= 1u << values.stage;
        u8* const place = memory + (place_of_values<C>(smem, values.stage) - smem);
        clear_rows_of<C>(place, 0, tile.begin - first);
        clear_rows_of<C>(place, max_of(0, tile.end - first), C.tile_tokens);
        ptx::fence_proxy_async_shared();
        ptx::sync_warp();
        if (ptx::lane_id() == 0) ptx::mbarrier_arrive(full_barrier<C.stages>(values.barriers, values.stage));
      }
      skip_read(values);
    }
  }
}

/// The pages of a gathering warp's rows of a tile: the warp has rows 8 i + 4 warp + j, j < 4, and lane l keeps the pages of its rows l and l + 32; -1 of a key that no row sees.
struct GatheredPages {
  i32 page[2];
};
template <PrefillSm90Config C> QN_DEVICE GatheredPages pages_of_tile(const PrefillSm90Params& p, const RowTile& tile, u32 warp, i32 first) {
  GatheredPages pages;
  QN_UNROLL
  for (int half = 0; half < 2; ++half) {
    const i32 of_warp = i32(ptx::lane_id()) + 32 * half, row = of_warp / 4 * 8 + 4 * i32(warp) + of_warp % 4, key = first + row;
    pages.page[half] = row < C.tile_tokens && key >= tile.begin && key < tile.end ? page_at(p, tile.keys.pages, key) : -1;
  }
  return pages;
}

/// Starts the copies of the warp's rows of a tile of T; zeros where no row sees the key.
template <PrefillSm90Config C, paged::BoxTile T>
QN_DEVICE void gather_rows(const PrefillSm90Params& p, const GatheredPages& pages, u32 warp, i32 first, const u8* head, i64 page_stride, i64 token_stride, u32 to) {
  constexpr u32 kUnits = u32(row_bytes(T)) / 16, kWidth = u32(column_bytes(T));
  const u32 lane = ptx::lane_id();
  QN_NO_UNROLL
  for (u32 i = 0; i < u32(T.tokens / 8); ++i) {
    const u32 of_warp = 4 * i + lane / 8, row = 8 * i + 4 * warp + lane / 8, key = u32(first) + row;
    const i32 page = ptx::shfl(i < 8 ? pages.page[0] : pages.page[1], int(of_warp % 32));
    const i32 slot = i32(key - quotient(key, p.page_size) * p.page_size.value);
    const u8* from = page < 0 ? head : head + i64(page) * page_stride + slot * token_stride;
    QN_UNROLL
    for (u32 pass = 0; pass < ceil_div(kUnits, 8u); ++pass) {
      const u32 unit = lane % 8 + 8 * pass, line = offset_in_tile(T, row, unit * 16);
      if (kUnits % 8 == 0 || unit < kUnits) ptx::cp_async_cg(to + (line ^ (line >> 7 & (kWidth / 16 - 1)) << 4), from + unit * 16, page < 0 ? 0 : 16);
    }
  }
  ptx::cp_async_commit();
}

/// The copies of all groups but the newest `left` have come: the ring is told of the older one, at `full`.
template <int left> QN_DEVICE void tell_copies(u32 full) {
  ptx::cp_async_wait<left>();
  ptx::fence_proxy_async_shared();  // wgmma reads them
  ptx::sync_warp();
  if (ptx::lane_id() == 0) ptx::mbarrier_arrive(full);
}

/// By key_warps() warps, of which this is warp `warp`. A tile is told of when the copies of the next one are on their way.
template <PrefillSm90Config C, class H> QN_DEVICE void gather_keys_and_values(const PrefillSm90Params& p, u8* memory, u32 smem, u32 warp) {
  Consumer<kToldItems> told{item_ring<C>(smem)};
  Producer<C.stages> keys{key_ring<C>(smem)}, values{value_ring<C>(smem)};
  u32 older = 0;  // full barrier of the copies that are on their way
  const auto copy_keys = [&](const RowTile& tile, const GatheredPages& pages, i32 first) {
    const u32 full = full_barrier<C.stages>(keys.barriers, keys.stage);
    ptx::mbarrier_wait(empty_barrier<C.stages>(keys.barriers, keys.stage), keys.parity);
    gather_rows<C, key_tile(C)>(p, pages, warp, first, p.k + i64(tile.head_kv) * p.k_head, p.k_page, p.k_token, place_of_keys<C>(smem, keys.stage));
    if (older != 0) tell_copies<1>(older);
    older = full;
    end_fill(keys);
  };
  const auto copy_values = [&](const RowTile& tile, const GatheredPages& pages, i32 first) {
    const u32 full = full_barrier<C.stages>(values.barriers, values.stage);
    ptx::mbarrier_wait(empty_barrier<C.stages>(values.barriers, values.stage), values.parity);
    gather_rows<C, value_tile(C)>(p, pages, warp, first, p.v + i64(tile.head_kv) * p.v_head, p.v_page, p.v_token, place_of_values<C>(smem, values.stage));
    tell_copies<1>(older);
    older = full;
    end_fill(values);
  };
  for (;;) {
    begin_read(told);
    const u8* const words = told_words<C>(memory, told.stage);
    const RowTile tile = told_tile(p, words);
    end_read(told);
    if (tile.rows <= 0) break;
    i32 now = first_tile<C, H>(p, tile);
    if (now >= tile.end) continue;
    i32 next = tile_behind<C, H>(p, words, now);
    GatheredPages pages_now = pages_of_tile<C>(p, tile, warp, now), pages_next = pages_of_tile<C>(p, tile, warp, next);
    copy_keys(tile, pages_now, now);
    QN_NO_UNROLL
    while (now < tile.end) {
      const i32 after = next < tile.end ? tile_behind<C, H>(p, words, next) : next;
      const GatheredPages pages_after = pages_of_tile<C>(p, tile, warp, after);
      if (next < tile.end) copy_keys(tile, pages_next, next);
      copy_values(tile, pages_now, now);
      now = next, next = after;
      pages_now = pages_next, pages_next = pages_after;
    }
  }
  if (older != 0) tell_copies<0>(older);
}

/// By one warp: rows of q of each tile, zeros where it has none.
template <PrefillSm90Config C, class H> QN_DEVICE void load_queries(const PrefillSm90Params& p, u8* memory, u32 smem) {
  constexpr paged::BoxTile T = query_tile(C);
  constexpr u32 kWidth = u32(column_bytes(T)), kUnits = u32(row_bytes(T)) / 16;
  Consumer<kToldItems> told{item_ring<C>(smem)};
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
    for (u32 row = ptx::lane_id() / 8; row < u32(block_rows(C)); row += 4) {
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
