// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Row tiles of a block of prefill_sm90. One warp finds them, and tells them to the block's other warps through shared memory.
//
// Tiles of all requests are numbered in the order (request, row tile, KV head), and taken from the last: where attention is causal a request's later rows see more
// keys. Block b of n takes number b, then 2 n - 1 - b, 2 n + b, 4 n - 1 - b, ..: in turn from either side, so that blocks have as much to do where work ascends with the number.
// A counter in memory, from which each block takes the next number, would need to be zero before the call.
#pragma once
#include "quern/kit/pipeline.cuh"
#include "quern/kit/scan.cuh"
#include "quern/ops/attention/prefill/request.cuh"
#include "quern/ops/attention/prefill_sm90/spec.h"

namespace quern::attention {

/// By a warp: row tiles of all requests for one KV head.
template <PrefillSm90Config C> QN_DEVICE u32 count_row_tiles(const PrefillSm90Params& p) {
  u32 tiles = 0;
  for (i64 request = ptx::lane_id(); request < p.batch; request += 32) tiles += row_tiles_of<C>(p, query_tokens(p, request).count);
  return ptx::shfl(warp_prefix_sum(tiles), 31);
}

/// By a warp: tile `target` of them, below count_row_tiles().
template <PrefillSm90Config C> QN_DEVICE RowTile row_tile_at(const PrefillSm90Params& p, u32 target, i32 head_kv) {
  u32 base = 0;
  for (i64 first = 0; first < p.batch; first += 32) {
    const i64 request = first + ptx::lane_id();
    const u32 end = base + warp_prefix_sum(request < p.batch ? row_tiles_of<C>(p, query_tokens(p, request).count) : 0), last = ptx::shfl(end, 31);
    if (target < last) {
      const int lane = first_lane_above(end, target);
      const u32 begin = lane == 0 ? base : ptx::shfl(end, max_of(lane - 1, 0));
      return row_tile_of<C>(p, first + lane, head_kv, i32(target - begin) * block_rows(C));
    }
    base = last;
  }
  return {};
}

/// Number of the tile that the block takes in round `round`.
QN_DEVICE u32 tile_number(u32 round) { return round * gridDim.x + (round % 2 == 0 ? blockIdx.x : gridDim.x - 1 - blockIdx.x); }

/// What the other warps need of a tile. `rows` 0: there are no more.
QN_DEVICE void tell_tile(const PrefillSm90Params& p, u8* told, const RowTile& at) {
  const u64 pages = u64(at.keys.pages - p.pages);
  const i32 words[kTileWords] = {i32(at.request), at.head_kv, i32(at.queries.begin), at.queries.count, at.keys.length, at.keys.end, at.first_row, at.rows, at.begin, at.end, i32(u32(pages)), i32(pages >> 32)};
  QN_UNROLL
  for (int i = 0; i < kTileWords; i += 4)
    ptx::st_shared(told + 4 * i, u32x4{u32(words[i]), u32(words[i + 1]), u32(words[i + 2]), u32(words[i + 3])});
}
QN_DEVICE RowTile told_tile(const PrefillSm90Params& p, const u8* told) {
  i32 words[kTileWords];
  QN_UNROLL
  for (int i = 0; i < kTileWords; i += 4) {
    const u32x4 four = ptx::ld_shared<u32x4>(told + 4 * i);
    words[i] = i32(four.x), words[i + 1] = i32(four.y), words[i + 2] = i32(four.z), words[i + 3] = i32(four.w);
  }
  RowTile at{};
  at.request = words[0], at.head_kv = words[1];
  at.queries = {words[2], words[3]};
  at.keys.length = words[4], at.keys.end = words[5];
  at.first_row = words[6], at.rows = words[7], at.begin = words[8], at.end = words[9];
  at.keys.pages = p.pages + (u64(u32(words[10])) | u64(u32(words[11])) << 32);
  return at;
}

/// The rows of a told tile that a warpgroup multiplies; none: rows <= 0.
QN_DEVICE RowTile rows_of_warpgroup(const PrefillSm90Params& p, const u8* told, u32 warpgroup) {
  RowTile at = told_tile(p, told);
  at.scale = f32(p.scale) * scale_at(p.k_scale, at.request, at.head_kv);
  at.first_row += 64 * i32(warpgroup);
  at.rows = min_of(64, at.rows - 64 * i32(warpgroup));
  return at;
}

}  // namespace quern::attention
