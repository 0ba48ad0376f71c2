// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Tiles of the keys, or values, of one head that TMA brings to shared memory: how they lie there.
//
//   a tile     `tokens` rows of `head_dim` elements, cut into columns as wide as the widest swizzle that divides a row
//   a column   [tokens][width bytes], swizzled; columns lie one behind the other
//   a box      `rows` rows of a column: one copy. Of a paged cache it lies in one page
//
// So a column is a K-major operand of wgmma where head_dim is summed over, and an MN-major one where tokens are. A tile begins at a
// multiple of 1024 bytes.
#pragma once
#include "quern/kit/abi.h"

namespace quern::paged {

/// A tile. Part of a Config.
struct BoxTile {
  DType dtype;
  i32 head_dim;  // a row is a multiple of 16 bytes
  i32 tokens;    // a multiple of 8, at most 256
};

/// Least rows of a box: eight rows of 128 bytes are one pattern of the swizzle, and shorter boxes reach no useful rate.
constexpr i32 kLeastBoxRows = 8;
/// Most rows of a box of a paged cache.
constexpr i32 kMostBoxRows = 64;

QN_HOST_DEVICE constexpr i32 row_bytes(const BoxTile& t) { return t.head_dim * size_of(t.dtype); }
/// Bytes of a row in a column: 128, 64, 32 or 16.
QN_HOST_DEVICE constexpr i32 column_bytes(const BoxTile& t) {
  for (i32 width = 128; width > 16; width /= 2)
    if (row_bytes(t) % width == 0) return width;
  return 16;
}
QN_HOST_DEVICE constexpr i32 columns_of(const BoxTile& t) { return row_bytes(t) / column_bytes(t); }
QN_HOST_DEVICE constexpr Swizzle swizzle_of(const BoxTile& t) {
  const i32 width = column_bytes(t);
  return width == 128 ? Swizzle::b128 : width == 64 ? Swizzle::b64 : width == 32 ? Swizzle::b32 : Swizzle::none;
}
/// Bytes of a tile, of which TMA counts all at the mbarrier, those of boxes that lie outside of the tensor too.
QN_HOST_DEVICE constexpr i32 tile_bytes(const BoxTile& t) { return t.tokens * row_bytes(t); }
/// Bytes from the tile's beginning to byte `byte` of row `row`, before the swizzle.
QN_HOST_DEVICE constexpr u32 offset_in_tile(const BoxTile& t, u32 row, u32 byte) {
  const u32 width = u32(column_bytes(t));
  return byte / width * width * u32(t.tokens) + row * width + byte % width;
}

/// Rows of a paged cache's boxes: the largest power of two, up to 64, that divides pages and tiles.
QN_HOST_DEVICE constexpr i32 box_rows(i64 page_size, i32 tokens) {
  i32 rows = 1;
  while (rows < kMostBoxRows && page_size % (2 * rows) == 0 && tokens % (2 * rows) == 0) rows *= 2;
  return rows;
}

/// What a kernel is told of a paged cache.
struct BoxParams {
  TensorMap k, v;  // paged_boxes()
  i32 rows;        // of a box
  i32 no_page;     // a page that does not exist: its boxes are zeros
};

}  // namespace quern::paged
