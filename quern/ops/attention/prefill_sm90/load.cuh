// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The first warpgroup of prefill_sm90. Warp 0 finds items (tiles.cuh), warp 1 brings queries. Warps 2 and 3 bring keys and values: by TMA,
// where one brings keys and the other values, or row by row (gather), where both bring both. FP8 comes row by row too. It waits in slots of
// the lanes that copied it; these lanes convert it to f16, into the place where the products read it.
#pragma once
#include "quern/bricks/paged/boxes.cuh"
#include "quern/ops/attention/prefill/logits.cuh"
#include "quern/ops/attention/prefill_sm90/tiles.cuh"

namespace quern::attention {

/// Addresses of the block's shared memory.
template <PrefillSm90Config C> QN_DEVICE u32 place_of_queries(u32 smem, u32 warpgroup) {
  return smem + prefill_sm90_smem(C).queries + warpgroup * u32(tile_bytes(query_tile(C)));
}
template <PrefillSm90Config C> QN_DEVICE u32 place_of_keys(u32 smem, u32 stage) {
  return smem + prefill_sm90_smem(C).keys + stage * u32(round_up(tile_bytes(key_tile(C)), 1024));
}
template <PrefillSm90Config C> QN_DEVICE u32 place_of_values(u32 smem, u32 stage) {
  return smem + prefill_sm90_smem(C).values + stage * u32(round_up(tile_bytes(value_tile(C)), 1024));
}
template <PrefillSm90Config C> QN_DEVICE u32 place_of_slot(u32 slot) { return u32(prefill_sm90_smem(C).slots) + slot * u32(slot_bytes(C)); }
template <PrefillSm90Config C> QN_DEVICE u32 key_ring(u32 smem) { return smem + prefill_sm90_smem(C).key_barriers; }
template <PrefillSm90Config C> QN_DEVICE u32 value_ring(u32 smem) { return smem + prefill_sm90_smem(C).value_barriers; }
template <PrefillSm90Config C> QN_DEVICE u32 item_ring(u32 smem) { return smem + prefill_sm90_smem(C).item_barriers; }
template <PrefillSm90Config C> QN_DEVICE u32 queries_full(u32 smem) { return smem + prefill_sm90_smem(C).query_barriers; }
template <PrefillSm90Config C> QN_DEVICE u32 queries_free(u32 smem) { return smem + prefill_sm90_smem(C).query_barriers + 8; }
template <PrefillSm90Config C> QN_DEVICE u32 edge_barrier(u32 smem) { return smem + prefill_sm90_smem(C).query_barriers + 16; }
template <PrefillSm90Config C> QN_DEVICE u8* told_words(u8* memory, u32 slot) {
  return memory + prefill_sm90_smem(C).told + slot * (4 * kToldWords);
}

/// By one warp: finds items and tells them to the other warps, the next one when an earlier one has ended. So a block claims no item long
/// before it begins it.
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

/// The tile of keys behind `first` that some row sees, or one behind the last. `told`: of the row tile.
template <PrefillSm90Config C, class H> QN_DEVICE i32 tile_behind(const PrefillSm90Params& p, const u8* told, i32 first) {
  first += C.tile_tokens;
  if constexpr (has_tile<H>) first = next_tile<C, H>(p, told_tile(p, told), first);
  return first;
}

/// By a warp: brings the tiles of keys, or of values, of all items by TMA. At either end of what the row tile sees, values come that no row
/// sees. They are made zeros, because a probability of 0 times what memory happens to hold could be NaN. TMA reports the copies of such a
/// stage to a barrier of its own, and the warp then tells the ring.
template <PrefillSm90Config C, class H, bool kValues> QN_DEVICE void load_tiles(const PrefillSm90Params& p, u8* memory, u32 smem) {
  constexpr paged::BoxTile T = kValues ? value_tile(C) : key_tile(C);
  const TensorMap* const map = kValues ? &p.boxes.v : &p.boxes.k;
  const paged::BoxLane boxes = paged::box_lane<T>(p.boxes.rows);
  Consumer<kToldItems> told{item_ring<C>(smem)};
  Producer<C.stages> fill{kValues ? value_ring<C>(smem) : key_ring<C>(smem)};
  u32 edge_parity = 0;
  for (;;) {
    begin_read(told);
    const u8* const words = told_words<C>(memory, told.stage);
    const RowTile tile = told_tile(p, words);
    if (tile.rows <= 0) return;
    const paged::PageRow row{tile.keys.pages, p.page_size, p.last_page, p.boxes.no_page};
    const auto page_of = [&](i32 first) {
      return C.places == KeyPlaces::contiguous ? 0 : paged::page_of_box(boxes, row, p.boxes.rows, first, tile.begin, tile.end);
    };
    i32 first = first_tile<C, H>(p, tile), page = page_of(first);
    QN_NO_UNROLL
    while (first < tile.end) {
      const i32 next = tile_behind<C, H>(p, words, first), page_next = page_of(next);  // the table is read a tile ahead
      const bool edge = kValues && (first < tile.begin || first + C.tile_tokens > tile.end);
      const u32 ring = full_barrier<C.stages>(fill.barriers, fill.stage), full = edge ? edge_barrier<C>(smem) : ring;
      const u32 to = kValues ? place_of_values<C>(smem, fill.stage) : place_of_keys<C>(smem, fill.stage);
      if (ptx::lane_id() == 0) {
        ptx::mbarrier_wait(empty_barrier<C.stages>(fill.barriers, fill.stage), fill.parity);
        ptx::mbarrier_arrive_expect_tx(full, u32(tile_bytes(T)));
      }
      ptx::sync_warp();
      if constexpr (C.places == KeyPlaces::contiguous)
        paged::load_rows<T>(to, map, full, CachePolicy::evict_normal, i32(tile.keys.first) + first, tile.head_kv);
      else paged::load_pages<T>(to, map, full, CachePolicy::evict_normal, boxes, row, first, tile.head_kv, page);
      if (edge) {
        ptx::mbarrier_wait(full, edge_parity);
        edge_parity ^= 1;
        paged::clear_other_rows<T>(memory + (to - smem), tile.begin - first, tile.end - first, i32(ptx::lane_id()), 32);
        ptx::fence_proxy_async_shared();
        ptx::sync_warp();
        if (ptx::lane_id() == 0) ptx::mbarrier_arrive(ring);
      }
      end_fill(fill);
      first = next, page = page_next;
    }
    end_read(told);
  }
}

/// Where a gathering warp's rows of a tile are: the warp has rows 8 i + 4 warp + j, j < 4, and lane l keeps those of its rows l and l + 32.
/// page: -1 of a key that no row sees.
struct GatheredRows {
  i32 page[2], slot[2];
};
template <PrefillSm90Config C> QN_DEVICE GatheredRows rows_of_tile(const PrefillSm90Params& p, const RowTile& tile, u32 warp, i32 first) {
  GatheredRows rows;
  QN_UNROLL
  for (int half = 0; half < 2; ++half) {
    const i32 of_warp = i32(ptx::lane_id()) + 32 * half, row = of_warp / 4 * 8 + 4 * i32(warp) + of_warp % 4, key = first + row;
    const bool seen = row < C.tile_tokens && key >= tile.begin && key < tile.end;
    if constexpr (C.places == KeyPlaces::contiguous) {
      rows.page[half] = seen ? 0 : -1, rows.slot[half] = i32(tile.keys.first) + key;
    } else {
      rows.page[half] = seen ? page_at(p, tile.keys.pages, key) : -1;
      rows.slot[half] = seen ? key - i32(quotient(u32(key), p.page_size) * p.page_size.value) : 0;
    }
  }
  return rows;
}

/// By a warp: copy(i, from, read) for its rows 8 i + 4 warp + lane / 8 of a tile; `read`: whether some row of q sees the key, which lies at
/// `from`. Most tiles have no row that is not seen: then nothing is asked row by row, and the loop is unrolled. On an H200 the products of
/// a tile of 128 keys take 1.8 us, in which two warps copy 256 rows of K and V.
template <PrefillSm90Config C, class Copy> QN_DEVICE void for_rows(const GatheredRows& rows, const u8* head, i64 page_stride,
                                                                   i64 token_stride, const Copy& copy) {
  static_assert(C.tile_tokens % 16 == 0);
  constexpr u32 kRows = u32(C.tile_tokens / 8);
  const u32 lane = ptx::lane_id();
  u64 offsets[2];
  u32 seen[2];  // a bit for each lane
  bool all_mine = true;
  QN_UNROLL
  for (int half = 0; half < 2; ++half) {
    const bool mine = rows.page[half] >= 0;
    offsets[half] = mine ? u64(rows.page[half] * page_stride + rows.slot[half] * token_stride) : 0;
    seen[half] = ptx::ballot(mine);
    all_mine = all_mine && (mine || lane + 32 * u32(half) >= 4 * kRows);  // a tile has 4 kRows rows of each warp
  }
  const auto from = [&](u32 i, u32 source) {
    const u64 mine = i < 8 ? offsets[0] : offsets[1];  // an index would put both into local memory
    return head + (ptx::shfl(u32(mine), int(source)) | u64(ptx::shfl(u32(mine >> 32), int(source))) << 32);
  };
  if (ptx::all(all_mine)) {
    QN_UNROLL
    for (u32 i = 0; i < kRows; ++i) copy(i, from(i, 4 * i % 32 + lane / 8), true);
    return;
  }
  QN_NO_UNROLL
  for (u32 i = 0; i < kRows; ++i) {
    const u32 source = 4 * i % 32 + lane / 8;
    copy(i, from(i, source), ((i < 8 ? seen[0] : seen[1]) >> source & 1) != 0);
  }
}

/// Starts the copies of the warp's rows of a tile of T; zeros where no row sees the key.
template <PrefillSm90Config C, paged::BoxTile T>
QN_DEVICE void gather_rows(const GatheredRows& rows, u32 warp, const u8* head, i64 page_stride, i64 token_stride, u32 to) {
  constexpr u32 kUnits = u32(row_bytes(T)) / 16, kPasses = ceil_div(kUnits, 8u), kEightRows = 8 * u32(column_bytes(T));
  const u32 lane = ptx::lane_id(), unit = lane % 8;
  u32 places[kPasses];  // of the first row; rows of the same number modulo 8 are swizzled alike
  QN_UNROLL
  for (u32 pass = 0; pass < kPasses; ++pass) places[pass] = paged::place_in_tile<T>(to, 4 * warp + lane / 8, (unit + 8 * pass) * 16);
  for_rows<C>(rows, head + unit * 16, page_stride, token_stride, [&](u32 i, const u8* from, bool read) {
    QN_UNROLL
    for (u32 pass = 0; pass < kPasses; ++pass)
      if (kUnits % 8 == 0 || unit + 8 * pass < kUnits) ptx::cp_async_cg(places[pass] + i * kEightRows, from + 128 * pass, read ? 16 : 0);
  });
}

/// Starts the copies of the warp's rows of kWidth FP8 numbers into its half of a slot; zeros where no row sees the key.
template <PrefillSm90Config C, i32 kWidth>
QN_DEVICE void gather_fp8(const GatheredRows& rows, const u8* head, i64 page_stride, i64 token_stride, u32 slot) {
  constexpr u32 kUnits = u32(kWidth) / 16, kPasses = ceil_div(kUnits, 8u);
  const u32 lane = ptx::lane_id(), unit = lane % 8, place = slot + lane * 16;
  for_rows<C>(rows, head + unit * 16, page_stride, token_stride, [&](u32 i, const u8* from, bool read) {
    QN_UNROLL
    for (u32 pass = 0; pass < kPasses; ++pass)
      if (kUnits % 8 == 0 || unit + 8 * pass < kUnits)
        ptx::cp_async_cg(place + (i * kPasses + pass) * 512, from + 128 * pass, read ? 16 : 0);
  });
  ptx::cp_async_commit();
}
/// The same rows, of a tile of T, become f16 at `to`. Each lane converts what it copied. Half of the lanes store the second eight numbers
/// first: eight lanes' stores go to different banks.
template <PrefillSm90Config C, paged::BoxTile T> QN_DEVICE void convert_fp8(u32 warp, const u8* slot, u8* to, u32 tile) {
  using Stored = dtype_t<C.kv_dtype>;
  constexpr u32 kUnits = u32(row_bytes(T)) / 32, kPasses = ceil_div(kUnits, 8u);
  const u32 lane = ptx::lane_id();
  QN_NO_UNROLL
  for (u32 pair = 0; pair < u32(T.tokens / 16); ++pair) {
    u32 turned[1] = {lane / 4 % 2};
    ptx::wgmma_hold(turned);  // else the loop is split in two, one for either half of the warp
    u32x4 raw[2][kPasses];
    QN_UNROLL
    for (u32 i = 0; i < 2; ++i) {
      QN_UNROLL
      for (u32 pass = 0; pass < kPasses; ++pass)
        if (kUnits % 8 == 0 || lane % 8 + 8 * pass < kUnits)
          raw[i][pass] = ptx::ld_shared<u32x4>(slot + (((2 * pair + i) * kPasses + pass) * 32 + lane) * 16);
    }
    QN_UNROLL
    for (u32 i = 0; i < 2; ++i) {
      QN_UNROLL
      for (u32 pass = 0; pass < kPasses; ++pass) {
        const u32 unit = lane % 8 + 8 * pass;
        if (kUnits % 8 != 0 && unit >= kUnits) continue;
        const u32x4& x = raw[i][pass];
        const u32x2 first{turned[0] != 0 ? x.z : x.x, turned[0] != 0 ? x.w : x.y},
            second{turned[0] != 0 ? x.x : x.z, turned[0] != 0 ? x.y : x.w};
        const u32 at = paged::place_in_tile<T>(tile, 8 * (2 * pair + i) + 4 * warp + lane / 8, unit * 32 + 16 * turned[0]) - tile;
        ptx::st_shared(to + at, widen_eight<Stored, f16>(first));
        ptx::st_shared(to + (at ^ 16), widen_eight<Stored, f16>(second));
      }
    }
  }
}

/// By two warps, of which this is warp `warp`. No lane waits for its copies: each tells the ring of them when they have come.
template <PrefillSm90Config C, class H> QN_DEVICE void gather_keys_and_values(const PrefillSm90Params& p, u8* memory, u32 smem, u32 warp) {
  Consumer<kToldItems> told{item_ring<C>(smem)};
  Producer<C.stages> keys{key_ring<C>(smem)}, values{value_ring<C>(smem)};
  const auto copy_keys = [&](const RowTile& tile, const GatheredRows& rows) {
    ptx::mbarrier_wait(empty_barrier<C.stages>(keys.barriers, keys.stage), keys.parity);
    gather_rows<C, key_tile(C)>(rows, warp, p.k + i64(tile.head_kv) * p.k_head, p.k_page, p.k_token, place_of_keys<C>(smem, keys.stage));
    ptx::cp_async_arrive(full_barrier<C.stages>(keys.barriers, keys.stage));
    end_fill(keys);
  };
  const auto copy_values = [&](const RowTile& tile, const GatheredRows& rows) {
    ptx::mbarrier_wait(empty_barrier<C.stages>(values.barriers, values.stage), values.parity);
    gather_rows<C, value_tile(C)>(rows, warp, p.v + i64(tile.head_kv) * p.v_head, p.v_page, p.v_token,
                                  place_of_values<C>(smem, values.stage));
    ptx::cp_async_arrive(full_barrier<C.stages>(values.barriers, values.stage));
    end_fill(values);
  };
  for (;;) {
    begin_read(told);
    const u8* const words = told_words<C>(memory, told.stage);
    const RowTile tile = told_tile(p, words);
    if (tile.rows <= 0) return;
    i32 now = first_tile<C, H>(p, tile);
    if (now < tile.end) {
      i32 next = tile_behind<C, H>(p, words, now);
      GatheredRows rows_now = rows_of_tile<C>(p, tile, warp, now), rows_next = rows_of_tile<C>(p, tile, warp, next);
      copy_keys(tile, rows_now);
      QN_NO_UNROLL
      while (now < tile.end) {
        const i32 after = next < tile.end ? tile_behind<C, H>(p, words, next) : next;
        const GatheredRows rows_after = rows_of_tile<C>(p, tile, warp, after);  // the table is read a tile ahead
        if (next < tile.end) copy_keys(tile, rows_next);
        copy_values(tile, rows_now);
        now = next, next = after;
        rows_now = rows_next, rows_next = rows_after;
      }
    }
    end_read(told);
  }
}

/// The same of FP8. The copies of up to C.slots tiles are on their way. The tile that was begun first is converted when the copies of the
/// others have been asked for.
template <PrefillSm90Config C, class H> QN_DEVICE void gather_and_convert(const PrefillSm90Params& p, u8* memory, u32 smem, u32 warp) {
  Consumer<kToldItems> told{item_ring<C>(smem)};
  Producer<C.stages> keys{key_ring<C>(smem)}, values{value_ring<C>(smem)};
  const u32 half = warp * u32(slot_bytes(C) / 2);
  u32 begun = 0, oldest = 0;   // slots: of the next copies, of those that wait longest
  u32 kinds = 0, waiting = 0;  // bit i of kinds: the i-th of those that wait are values
  const auto convert_oldest = [&] {
    const u8* const slot = memory + place_of_slot<C>(oldest) + half;
    oldest = oldest + 1 == u32(C.slots) ? 0 : oldest + 1;
    const bool of_values = (kinds & 1) != 0;
    Producer<C.stages> ring = of_values ? values : keys;  // a copy: a reference to either would put both into local memory
    ptx::mbarrier_wait(empty_barrier<C.stages>(ring.barriers, ring.stage), ring.parity);
    const u32 tile = of_values ? place_of_values<C>(smem, ring.stage) : place_of_keys<C>(smem, ring.stage);
    if (C.head_dim == C.head_dim_v || !of_values) convert_fp8<C, key_tile(C)>(warp, slot, memory + (tile - smem), tile);
    else convert_fp8<C, value_tile(C)>(warp, slot, memory + (tile - smem), tile);
    ptx::fence_proxy_async_shared();  // of what was converted
    ptx::sync_warp();
    if (ptx::lane_id() == 0) ptx::mbarrier_arrive(full_barrier<C.stages>(ring.barriers, ring.stage));
    end_fill(ring);
    if (of_values) values = ring;
    else keys = ring;
    kinds >>= 1, --waiting;
  };
  for (;;) {
    begin_read(told);
    const u8* const words = told_words<C>(memory, told.stage);
    const RowTile tile = told_tile(p, words);
    const bool last = tile.rows <= 0;
    i32 now = last ? 0 : first_tile<C, H>(p, tile);
    if (last || now >= tile.end) {  // no copies follow, and the item behind this one may wait for those before
      ptx::cp_async_wait<0>();
      QN_NO_UNROLL
      while (waiting > 0) convert_oldest();
      if (last) return;
      end_read(told);
      continue;
    }
    // Keys of the first tile; then, again and again, keys of the next tile and values of this one
    i32 next = tile_behind<C, H>(p, words, now), after = next;
    GatheredRows rows_now = rows_of_tile<C>(p, tile, warp, now), rows_next = rows_of_tile<C>(p, tile, warp, next), rows_after = rows_next;
    bool keys_of_now = false, keys_of_next = false;  // are begun
    QN_NO_UNROLL
    while (now < tile.end) {
      const bool of_next = keys_of_now && !keys_of_next && next < tile.end, of_values = keys_of_now && !of_next;
      if (of_values && next < tile.end)
        after = tile_behind<C, H>(p, words, next), rows_after = rows_of_tile<C>(p, tile, warp, after);  // the table is read a tile ahead
      const u32 slot = smem + place_of_slot<C>(begun) + half;
      const GatheredRows rows = of_next ? rows_next : rows_now;
      const u8* const head = of_values ? p.v + i64(tile.head_kv) * p.v_head : p.k + i64(tile.head_kv) * p.k_head;
      const i64 page_stride = of_values ? p.v_page : p.k_page, token_stride = of_values ? p.v_token : p.k_token;
      if (C.head_dim == C.head_dim_v || !of_values) gather_fp8<C, C.head_dim>(rows, head, page_stride, token_stride, slot);
      else gather_fp8<C, C.head_dim_v>(rows, head, page_stride, token_stride, slot);
      begun = begun + 1 == u32(C.slots) ? 0 : begun + 1;
      kinds |= u32(of_values) << waiting++;
      if (waiting == u32(C.slots)) {
        ptx::cp_async_wait<C.slots - 1>();
        convert_oldest();
      }
      if (of_values) {
        now = next, next = after;
        rows_now = rows_next, rows_next = rows_after;
        keys_of_now = keys_of_next, keys_of_next = false;
      } else {
        keys_of_now = true, keys_of_next = of_next;
      }
    }
    end_read(told);
  }
}

/// By a warp: the block's rows of q, zeros where it has none.
template <PrefillSm90Config C> QN_DEVICE void copy_queries(const PrefillSm90Params& p, const RowTile& tile, u8* memory, u32 smem) {
  constexpr paged::BoxTile T = query_tile(C);
  constexpr u32 kUnits = u32(row_bytes(T)) / 16;
  QN_NO_UNROLL
  for (u32 row = ptx::lane_id() / 8; row < u32(block_rows(C)); row += 4) {
    const bool read = i32(row) < tile.rows;
    const RowPlace of_row = place_of_row(p, tile.head_kv, tile.first_row + (read ? i32(row) : 0));
    const u8* from = p.q + (tile.queries.begin + of_row.query) * p.q_token + i64(of_row.head_q) * p.q_head;
    QN_UNROLL
    for (u32 unit = ptx::lane_id() % 8; unit < kUnits; unit += 8) {
      const u32 to = paged::place_in_tile<T>(place_of_queries<C>(smem, row / 64), row % 64, unit * 16);
      if (p.q_wide) {
        ptx::cp_async_cg(to, from + unit * 16, read ? 16 : 0);
      } else {
        u32 words[4];
        QN_UNROLL
        for (u32 i = 0; i < 4; ++i)
          words[i] =
              read ? u32(ptx::ld_global_nc<u16>(from + unit * 16 + 4 * i)) | u32(ptx::ld_global_nc<u16>(from + unit * 16 + 4 * i + 2)) << 16
                   : 0;
        ptx::st_shared(memory + (to - smem), u32x4{words[0], words[1], words[2], words[3]});
      }
    }
  }
  ptx::cp_async_commit();
  ptx::cp_async_wait<0>();
  ptx::fence_proxy_async_shared();
  ptx::sync_warp();
  if (ptx::lane_id() == 0) ptx::mbarrier_arrive(queries_full<C>(smem));
}

/// By one thread: the same by TMA. A box is a column of a warpgroup's 64 rows: the heads of a KV head of 64 / group tokens. Rows that the
/// request does not have are those of the next one, or zeros where q ends: nobody stores their sums.
template <PrefillSm90Config C> QN_DEVICE void load_query_boxes(const PrefillSm90Params& p, const RowTile& tile, u32 smem) {
  constexpr paged::BoxTile T = query_tile(C);
  ptx::mbarrier_arrive_expect_tx(queries_full<C>(smem), u32(C.warpgroups * tile_bytes(T)));
  QN_UNROLL
  for (i32 warpgroup = 0; warpgroup < C.warpgroups; ++warpgroup) {
    const i32 token = i32(tile.queries.begin) + i32(quotient(u32(tile.first_row + 64 * warpgroup), p.group));
    QN_UNROLL
    for (i32 column = 0; column < columns_of(T); ++column)
      ptx::tma_load(place_of_queries<C>(smem, u32(warpgroup)) + u32(column * 64 * column_bytes(T)), &p.queries, queries_full<C>(smem),
                    CachePolicy::evict_normal, column * (column_bytes(T) / 2), tile.head_kv * i32(p.group.value), token);
  }
}

/// By one warp: rows of q of each item.
template <PrefillSm90Config C, class H> QN_DEVICE void load_queries(const PrefillSm90Params& p, u8* memory, u32 smem) {
  Consumer<kToldItems> told{item_ring<C>(smem)};
  u32 parity = 1;
  for (;;) {
    begin_read(told);
    const RowTile tile = told_tile(p, told_words<C>(memory, told.stage));
    end_read(told);
    if (tile.rows <= 0) return;
    if (first_tile<C, H>(p, tile) >= tile.end) continue;
    ptx::mbarrier_wait(queries_free<C>(smem), parity);
    ptx::sync_warp();
    parity ^= 1;
    if constexpr (C.query_boxes == 0) copy_queries<C>(p, tile, memory, smem);
    else if (ptx::lane_id() == 0) load_query_boxes<C>(p, tile, smem);
  }
}

}  // namespace quern::attention
