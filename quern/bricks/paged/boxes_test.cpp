// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Tiles of keys by TMA, in every world, against plain indexing of the cache.
#include "quern/bricks/paged/boxes.h"

#include <vector>

#include "quern/kit/conform/runner.h"
#include "quern/kit/conform/tensors.h"

namespace quern::conform {
namespace {

class Boxes : public Conform {};
INSTANTIATE_TEST_SUITE_P(Worlds, Boxes, ::testing::ValuesIn(worlds(0)), world_name);

/// As conform.cuh has them.
constexpr paged::BoxTile kTiles[] = {
    {DType::bf16, 128, 64}, {DType::f16, 80, 128}, {DType::e4m3, 192, 64}, {DType::e5m2, 112, 80}, {DType::f16, 96, 176}};
constexpr i64 kPages = 9, kHeads = 3, kTableBytes = 1024;

/// A cache in a buffer behind a page table: pages, offsets and heads in one of two orders, rows 16 bytes further apart than they need be.
struct Cache {
  TensorView view;
  std::vector<u8> bytes;
  Cache(const paged::BoxTile& tile, i64 page_size, bool heads_first) {
    const i64 element = size_of(tile.dtype), row = tile.head_dim + 16 / element, pages = row * kHeads * page_size;
    view = TensorView(nullptr, tile.dtype, {kPages, page_size, kHeads, tile.head_dim});
    view.strides[0] = pages, view.strides[1] = heads_first ? row : row * kHeads, view.strides[2] = heads_first ? row * page_size : row,
    view.strides[3] = 1;
    bytes.resize(size_t(kTableBytes + kPages * pages * element));
    for (size_t i = kTableBytes; i < bytes.size(); ++i)
      bytes[i] = u8(1 + (i * 2654435761u >> 13) % 255);  // no byte is 0, as those of no page are
  }
  u8 byte(i64 page, i64 offset, i64 head, i64 at) const {
    return bytes[size_t(kTableBytes + (page * view.strides[0] + offset * view.strides[1] + head * view.strides[2]) * size_of(view.dtype) +
                        at)];
  }
};

/// The tile by its definition: byte `at` of row `row` is byte_of(row, at).
template <class ByteOf> std::vector<u8> tile_by_definition(const paged::BoxTile& tile, const ByteOf& byte_of) {
  const int bytes = tile.head_dim * size_of(tile.dtype);
  int width = 16;
  while (width < 128 && bytes % (2 * width) == 0) width *= 2;
  std::vector<u8> expected(size_t(bytes * tile.tokens));
  for (int row = 0; row < tile.tokens; ++row)
    for (int at = 0; at < bytes; ++at) {
      const int place = at / width * width * tile.tokens + row * width + at % width;
      expected[size_t(swizzled_place(paged::swizzle_of(tile), place))] = byte_of(row, at);
    }
  return expected;
}

TEST_P(Boxes, tiles_come_from_pages) {
  Kernel kernel(GetParam(), kernel_text("quern/bricks/paged/conform.cuh", "tiles_of_boxes", 32, "TensorParams"), 32, 1024 + 40960);
  struct Where {
    int tile, page_size;
    i32 first, begin, end;
  };
  // Boxes of 8 to 64 rows; windows and ends inside of boxes; a tile that begins inside of a page
  for (const Where& w : {Where{0, 16, 64, 70, 112}, Where{0, 64, 0, 0, 64}, Where{0, 8, 128, 0, 161}, Where{1, 16, 0, 17, 100},
                         Where{1, 128, 128, 0, 200}, Where{2, 48, 64, 66, 120}, Where{3, 16, 80, 90, 131}, Where{4, 24, 8, 0, 180}}) {
    const paged::BoxTile& tile = kTiles[w.tile];
    Cache cache(tile, w.page_size, w.tile % 2 == 0);
    const i32 rows = paged::box_rows(w.page_size, tile.tokens), entries = i32(kTableBytes / 4);
    i32* table = reinterpret_cast<i32*>(cache.bytes.data());
    for (i32 i = 0; i < entries; ++i) table[i] = (5 * i + 2) % i32(kPages);
    table[w.end / w.page_size] = w.end % w.page_size == 0 ? 0 : -7;  // a breach becomes the last page
    const auto expected = tile_by_definition(tile, [&](int row, int at) -> u8 {
      const i32 token = w.first + row, box = token / rows * rows;
      if (box >= w.end || box + rows <= w.begin) return 0;
      const i32 entry = table[token / w.page_size];
      return cache.byte(entry < 0 ? kPages - 1 : entry, token % w.page_size, 1, at);
    });
    std::vector<u8> out(expected.size(), 0xee);
    kernel.run_with(cache.bytes, out, [&](const void* from, void* to) {
      TensorView view = cache.view;
      view.data = const_cast<u8*>(static_cast<const u8*>(from)) + kTableBytes;
      TensorParams p{.from = kernel.device().make_tensor_map(paged::paged_boxes(view, tile.tokens)),
                     .to = {},
                     .in = from,
                     .out = to,
                     .at = {w.first, 1, rows, w.begin, w.end},
                     .store = {w.page_size, i32(kPages)},
                     .bytes = 0,
                     .n = w.tile};
      return p;
    });
    EXPECT_EQ(out, expected) << "tile " << w.tile << " of pages of " << w.page_size << " from token " << w.first;
  }
}

TEST_P(Boxes, tiles_come_from_contiguous_rows) {
  Kernel kernel(GetParam(), kernel_text("quern/bricks/paged/conform.cuh", "tiles_of_boxes", 32, "TensorParams"), 32, 1024 + 40960, {},
                false);
  for (const auto& [n, first] : {std::pair{0, 5}, {1, 0}, {2, 100}, {3, 77}}) {  // 144 rows: the last two tiles pass their end
    const paged::BoxTile& tile = kTiles[n];
    Cache cache(tile, 16, false);
    const auto expected = tile_by_definition(tile, [&](int row, int at) -> u8 {
      const i64 token = first + row;
      return token < kPages * 16 ? cache.byte(token / 16, token % 16, 2, at) : u8(0);
    });
    std::vector<u8> out(expected.size(), 0xee);
    kernel.run_with(cache.bytes, out, [&](const void* from, void* to) {
      TensorView view(const_cast<u8*>(static_cast<const u8*>(from)) + kTableBytes, tile.dtype, {kPages * 16, kHeads, tile.head_dim});
      for (int d = 0; d < 3; ++d) view.strides[d] = cache.view.strides[d + 1];
      return TensorParams{.from = kernel.device().make_tensor_map(paged::contiguous_boxes(view, tile.tokens)),
                          .to = {},
                          .in = from,
                          .out = to,
                          .at = {first, 2, 0, 0, 0},
                          .store = {},
                          .bytes = 0,
                          .n = n};
    });
    EXPECT_EQ(out, expected) << "tile " << n << " from row " << first;
  }
}

TEST(boxes, reasons_and_rows) {
  EXPECT_EQ(paged::box_rows(16, 64), 16);
  EXPECT_EQ(paged::box_rows(256, 64), 64);
  EXPECT_EQ(paged::box_rows(24, 64), 8);
  EXPECT_EQ(paged::box_rows(64, 176), 16);
  EXPECT_FALSE(paged::no_boxes_of_pages(8, 64));
  EXPECT_EQ(to_string(paged::no_boxes_of_pages(12, 64)), "page_size=12, wants a multiple of 8");
  EXPECT_EQ(to_string(paged::no_boxes("alignment of k_cache",
                                      TensorFacts{.dtype = DType::bf16, .present = 1, .alignment = 8, .contiguous = 1, .transposed = 0})),
            "alignment of k_cache=8, wants 16 bytes for every row");
  EXPECT_FALSE(paged::no_boxes("alignment of k_cache",
                               TensorFacts{.dtype = DType::bf16, .present = 1, .alignment = 16, .contiguous = 1, .transposed = 0}));
}

}  // namespace
}  // namespace quern::conform
