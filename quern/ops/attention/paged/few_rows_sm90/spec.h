// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The kernel for requests of few rows on sm_90a: paged_few_rows_sm90.
#pragma once
#include "quern/bricks/paged/boxes_spec.h"
#include "quern/ops/attention/paged/split_kv/spec.h"

namespace quern::attention {

struct FewRowsConfig {
  DType dtype;     // of products: bf16 or f16
  DType q_dtype;   // bf16, f16, e4m3 or e5m2
  DType kv_dtype;  // dtype, or e4m3 or e5m2 beside products of f16
  DType out_dtype;
  DType lens_dtype;  // of seq_lens: i32 or i64
  i32 head_dim;      // a multiple of 16, at most 256
  i32 group_rows;    // rows of an item, the columns of the products: 8, 16 .. 64
  i32 warpgroups;    // that multiply: tile t of a segment is that of warpgroup t % warpgroups
  i32 stages;        // tiles of K or V in the ring
  i32 soft_cap;      // 1: logit = cap * tanh(logit / cap)
  i32 scales;        // 1: q_scale or k_scale is given
  KeyPlaces places;  // page_table or page_indices
  i32 several;       // 1: requests have q_indptr's query tokens, and those of more rows are another kernel's; 0: one token each
  i32 fixed_chunks;  // 1: a row is cut by its own length alone; 0: all rows are cut into equal shares of the blocks
  i32 threads;
  i32 min_blocks;
};

/// Most rows of a request of several query tokens.
constexpr i32 kFewRowsSm90 = 64;
QN_HOST_DEVICE constexpr i32 most_rows(const FewRowsConfig&) { return kFewRowsSm90; }

struct FewRowsParams : AttendParams {
  paged::BoxParams boxes;
  float* part_sums;    // [slots, part_floats()]: sums of exp2(logit - max) v, as the threads of a warpgroup hold them
  float* part_states;  // [slots, group_rows, 2]: maximum, sum of exp2(logit - max)
  u32* counters;       // [blocks]: of the item that was cut at the end of a block, how many blocks have written their parts. Zeros when the
                       // kernel begins
  i32 row_tiles;       // most items of a request and KV head
  i32 max_splits;      // slots of an item, fixed_chunks
  i32 min_share;       // least units of a block
};

/// Tokens of a tile, the rows of wgmma's A operand. A unit of work is one.
constexpr i32 kTileTokens = 64;

QN_HOST_DEVICE constexpr bool has_fp8_keys(const FewRowsConfig& c) { return size_of(c.kv_dtype) == 1; }
/// K or V of a tile.
QN_HOST_DEVICE constexpr paged::BoxTile tile_of_keys(const FewRowsConfig& c) { return {c.kv_dtype, c.head_dim, kTileTokens}; }
/// q, the B operand of the first product.
QN_HOST_DEVICE constexpr paged::BoxTile tile_of_queries(const FewRowsConfig& c) { return {c.dtype, c.head_dim, c.group_rows}; }
/// Rows of out^T in units of wgmma's 64: those beyond head_dim are not used.
QN_HOST_DEVICE constexpr i32 value_tiles(const FewRowsConfig& c) { return ceil_div(c.head_dim, 64); }
/// Bytes of a stage: wgmma reads V in whole tiles of 64 columns.
QN_HOST_DEVICE constexpr i32 stage_bytes(const FewRowsConfig& c) {
  return has_fp8_keys(c) ? round_up(paged::tile_bytes(tile_of_keys(c)), 1024) : value_tiles(c) * 64 * kTileTokens * 2;
}
/// Sums of a thread of an item: group_rows / 2 for 64 columns of head_dim.
QN_HOST_DEVICE constexpr i32 sums_of_thread(const FewRowsConfig& c) { return value_tiles(c) * c.group_rows / 2; }
QN_HOST_DEVICE constexpr i32 part_floats(const FewRowsConfig& c) { return 128 * sums_of_thread(c); }

/// What is known of a row of the item in hand.
struct RowFacts {
  i32 first, last;  // keys that it sees
  float scale;      // of logits, natural units
  i32 unused;
};

struct FewRowsSmem {
  int scan, barriers, last, rows, maxima, states, queries, probabilities, merge, ring, bytes;
};
/// merge holds what the warpgroups but the first have summed, or the sums as rows of head_dim + 4 f32.
QN_HOST_DEVICE constexpr FewRowsSmem few_rows_smem(const FewRowsConfig& c) {
  FewRowsSmem s{};
  s.barriers = 128;
  s.last = s.barriers + int(pipeline_bytes(c.stages));
  s.rows = round_up(s.last + 4, 16);
  s.maxima = s.rows + c.group_rows * int(sizeof(RowFacts));
  s.states = s.maxima + c.warpgroups * 4 * c.group_rows * 4;
  s.queries = round_up(s.states + c.warpgroups * c.group_rows * 8, 1024);
  s.probabilities = s.queries + round_up(paged::tile_bytes(tile_of_queries(c)), 1024);
  s.merge = s.probabilities + c.warpgroups * c.group_rows * kTileTokens * 2;
  s.ring = round_up(s.merge + max_of((c.warpgroups - 1) * part_floats(c), c.group_rows * (c.head_dim + 4)) * 4, 1024);
  s.bytes = s.ring + c.stages * stage_bytes(c);
  return s;
}

}  // namespace quern::attention
