// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// For tests: tiles that come by TMA, as they lie in shared memory.
#pragma once
#include "quern/bricks/paged/boxes.cuh"
#include "quern/kit/conform/params.h"

namespace quern::conform {

/// One warp. at: the tile's first token, head, rows of a box (0: contiguous rows), begin, end; store: page_size, pages. in: the page table.
/// out: the tile as it lies.
template <paged::BoxTile T> QN_DEVICE void tile_of_boxes(const TensorParams& p) {
  QN_SMEM(smem);
  const u32 lane = ptx::lane_id(), full = ptx::smem_address(smem), tile = full + 1024;
  if (lane == 0) {
    ptx::mbarrier_init(full, 1);
    ptx::fence_mbarrier_init();
    ptx::mbarrier_arrive_expect_tx(full, u32(tile_bytes(T)));
  }
  ptx::sync_warp();
  if (p.at[2] == 0) {
    paged::load_rows<T>(tile, &p.from, full, CachePolicy::evict_first, p.at[0], p.at[1]);
  } else {
    const paged::BoxLane boxes = paged::box_lane<T>(p.at[2]);
    const paged::PageRow row{static_cast<const i32*>(p.in), divisor(u32(p.store[0])), u32(p.store[1] - 1), p.store[1]};
    const i32 page = paged::page_of_box(boxes, row, p.at[2], p.at[0], p.at[3], p.at[4]);
    paged::load_pages<T>(tile, &p.from, full, CachePolicy::evict_first, boxes, row, p.at[0], p.at[1], page);
  }
  ptx::mbarrier_wait(full, 0);
  for (i32 i = 16 * i32(lane); i < tile_bytes(T); i += 512)
    ptx::st_global(static_cast<u8*>(p.out) + i, ptx::ld_shared<u32x4>(smem + 1024 + i));
}

/// By p.n, of the test's tiles.
QN_DEVICE void tiles_of_boxes(const TensorParams& p) {
  if (p.n == 0) tile_of_boxes<paged::BoxTile{DType::bf16, 128, 64}>(p);
  if (p.n == 1) tile_of_boxes<paged::BoxTile{DType::f16, 80, 128}>(p);
  if (p.n == 2) tile_of_boxes<paged::BoxTile{DType::e4m3, 192, 64}>(p);
  if (p.n == 3) tile_of_boxes<paged::BoxTile{DType::e5m2, 112, 80}>(p);
  if (p.n == 4) tile_of_boxes<paged::BoxTile{DType::f16, 96, 176}>(p);
}

}  // namespace quern::conform
