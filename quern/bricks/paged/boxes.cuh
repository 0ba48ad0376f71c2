// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Tiles of keys or values by TMA, from pages or from contiguous rows (boxes_spec.h). A warp makes the copies of a tile, a lane a box:
//
//   const BoxLane lane = box_lane<T>(boxes.rows);                     once
//   i32 page = page_of_box(lane, row, boxes.rows, first, begin, end); for the tile that comes next: a load
//   ...                                                               the stage is free; one lane announces tile_bytes(T)
//   load_pages<T>(to, &boxes.k, full, policy, lane, row, first, head, page);
//
// A stage counts tile_bytes(T) whatever is copied: boxes outside of the tensor count too, and are zeros.
#pragma once
#include "quern/bricks/paged/boxes_spec.h"
#include "quern/kit/kit.cuh"

namespace quern::paged {

/// Boxes that the calling lane copies of every tile: rows from `row` on, columns `column`, `column + step`, ..
struct BoxLane {
  i32 row, column, step;
};
/// `rows`: of a box; they divide the tile's tokens.
template <BoxTile T> QN_DEVICE BoxLane box_lane(i32 rows) {
  const i32 boxes = T.tokens / rows, side_by_side = 32 / boxes, lane = i32(ptx::lane_id());
  return {lane % boxes * rows, lane < boxes * side_by_side ? lane / boxes : columns_of(T), side_by_side};
}

/// A request's pages.
struct PageRow {
  const i32* entries;  // of the page table
  Divisor page_size;
  u32 last_page;  // entries beyond it, and negative ones, become it
  i32 no_page;    // BoxParams::no_page
};

/// The page of the lane's boxes of the tile whose row 0 is token `first`, a multiple of the boxes' rows. Entries are read only where a box
/// of `rows` tokens has one in [begin, end); else its page is no_page.
QN_DEVICE i32 page_of_box(const BoxLane& lane, const PageRow& row, i32 rows, i32 first, i32 begin, i32 end) {
  const i32 token = first + lane.row;
  if (token >= end || token + rows <= begin) return row.no_page;
  return i32(min_of(u32(ptx::ld_global_nc<i32>(row.entries + quotient(u32(token), row.page_size))), row.last_page));
}

/// By a warp: the copies of a tile. `page`: page_of_box() of this tile.
template <BoxTile T> QN_DEVICE void load_pages(u32 to, const TensorMap* map, u32 full, CachePolicy policy, const BoxLane& lane,
                                               const PageRow& row, i32 first, i32 head, i32 page) {
  constexpr i32 kWidth = column_bytes(T);
  const u32 token = u32(max_of(first + lane.row, 0));
  const i32 slot = i32(token - quotient(token, row.page_size) * row.page_size.value);
  QN_NO_UNROLL
  for (i32 column = lane.column; column < columns_of(T); column += lane.step)
    ptx::tma_load(to + u32((column * T.tokens + lane.row) * kWidth), map, full, policy, column * (kWidth / size_of(T.dtype)), slot, head,
                  page);
}

/// By a warp: the tile whose row 0 is row `first` of contiguous keys. Rows beyond the tensor are zeros.
template <BoxTile T> QN_DEVICE void load_rows(u32 to, const TensorMap* map, u32 full, CachePolicy policy, i32 first, i32 head) {
  constexpr i32 kWidth = column_bytes(T);
  static_assert(columns_of(T) <= 32);
  const i32 column = i32(ptx::lane_id());
  if (column < columns_of(T))
    ptx::tma_load(to + u32(column * T.tokens * kWidth), map, full, policy, column * (kWidth / size_of(T.dtype)), first, head);
}

/// Where byte `byte` of row `row` lies, of a tile that begins at the shared address `tile`, a multiple of 1024.
template <BoxTile T> QN_DEVICE u32 place_in_tile(u32 tile, u32 row, u32 byte) {
  return tile + swizzled(swizzle_of(T), offset_in_tile(T, row, byte));
}

/// Zeros for the rows of a tile below `from`, and from `to` on, by `threads` threads, of which this is `thread`. wgmma reads them behind a
/// fence of the proxies and a barrier.
template <BoxTile T> QN_DEVICE void clear_other_rows(u8* tile, i32 from, i32 to, i32 thread, i32 threads) {
  constexpr i32 kUnits = column_bytes(T) / 16;  // of a row in a column: a swizzle exchanges them among themselves
  QN_NO_UNROLL
  for (i32 row = thread / kUnits; row < T.tokens; row += threads / kUnits) {
    if (row >= from && row < to) continue;
    QN_UNROLL
    for (i32 column = 0; column < columns_of(T); ++column)
      ptx::st_shared(tile + (column * T.tokens + row) * column_bytes(T) + thread % kUnits * 16, u32x4{0, 0, 0, 0});
  }
}

}  // namespace quern::paged
