// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The kernel for requests of many query rows on Hopper, which attention.ragged and attention.paged share: prefill_sm90.
#pragma once
#include "quern/bricks/paged/boxes_spec.h"
#include "quern/ops/attention/attend_spec.h"

namespace quern::attention {

struct PrefillSm90Config {
  DType dtype;     // of both products: f16 or bf16
  DType q_dtype;   // dtype, or bf16 beside FP8 keys and products of f16
  DType kv_dtype;  // dtype, or e4m3 or e5m2 beside products of f16
  DType out_dtype;
  DType lens_dtype;  // of seq_lens: i32 or i64
  i32 head_dim;      // of q and k: a multiple of 16
  i32 head_dim_v;    // a multiple of 16
  i32 warpgroups;    // that multiply, of 64 rows each: 2 or 3
  i32 tile_tokens;   // keys of a tile: a multiple of 16
  i32 stages;        // tiles of K, and of V, in shared memory
  i32 turns;         // 1: warpgroups issue their products in turn, so that one multiplies while another makes probabilities
  i32 soft_cap;      // 1: logit = cap * tanh(logit / cap)
  i32 bits;          // 1: a packed mask
  KeyPlaces places;
  i32 gather;          // 1: keys and values come row by row, of pages that have no boxes and of FP8; else by TMA
  i32 slots;           // of FP8: tiles of K or V that are on their way; else 0
  i32 query_boxes;     // 1: queries come by TMA, where 64 is a multiple of the heads of a group; else row by row
  i32 parts;           // 1: keys of a row tile may be cut into parts
  i32 leave_few_rows;  // requests of so many rows (has_few_rows) are another kernel's; 0: none
  i32 threads;
  // What prefill/logits.cuh asks of every kernel for many rows: a warp has one tile of 16 rows, with all of v's columns
  static constexpr i32 row_tiles = 1, column_parts = 1;
};

struct PrefillSm90Params : AttendParams {
  paged::BoxParams boxes;
  TensorMap queries;  // of q: head_dim, head, token; a box is a column of 64 rows: the heads of a KV head of 64 / group tokens
  u32* next_item;     // counter, 0 when the kernel begins; null: blocks take items in a fixed order
  u32* parts_done;    // for each slot and warp, parts of its rows that are written: 0 when the kernel begins. Those of an item's part 0 are
                      // used
  float* parts;       // slots, each of a part
  i32 part_slots;
};

/// Least tiles of keys of a part.
constexpr i32 kLeastPart = 8;
/// There are so many slots for parts as four for each block of the grid.
constexpr i32 kPartSlots = 4;
/// What a warp writes of a part: the states of its rows, and its sums.
QN_HOST_DEVICE constexpr i32 part_bytes_of_warp(const PrefillSm90Config& c) { return 32 * 16 * (1 + c.head_dim_v / 8); }

/// Rows of a block's tile, query tokens times heads of a group.
QN_HOST_DEVICE constexpr i32 block_rows(const PrefillSm90Config& c) { return 64 * c.warpgroups; }

QN_HOST_DEVICE constexpr bool has_fp8_keys(const PrefillSm90Config& c) { return size_of(c.kv_dtype) == 1; }
/// Whether each row of q has a factor of its own, which its logits are multiplied with (widen_queries).
QN_HOST_DEVICE constexpr bool has_row_factors(const PrefillSm90Config& c) { return c.q_dtype != c.dtype; }

/// Arrivals that fill a stage of keys or of values: of one thread by TMA, of two warps that convert FP8, else of the lanes of two warps.
QN_HOST_DEVICE constexpr i32 arrivals_of_stage(const PrefillSm90Config& c) { return c.gather == 0 ? 1 : has_fp8_keys(c) ? 2 : 64; }

/// A warpgroup's rows of q, a tile of keys, a tile of values.
QN_HOST_DEVICE constexpr paged::BoxTile query_tile(const PrefillSm90Config& c) { return {c.dtype, c.head_dim, 64}; }
QN_HOST_DEVICE constexpr paged::BoxTile key_tile(const PrefillSm90Config& c) { return {c.dtype, c.head_dim, c.tile_tokens}; }
QN_HOST_DEVICE constexpr paged::BoxTile value_tile(const PrefillSm90Config& c) { return {c.dtype, c.head_dim_v, c.tile_tokens}; }

/// FP8 of a tile on its way, as the lanes that copy it convert it again: lane l of row quartet i has 16 bytes at 32 * i + l, once for each
/// 128 columns.
QN_HOST_DEVICE constexpr i32 slot_bytes(const PrefillSm90Config& c) {
  return c.tile_tokens * round_up(max_of(c.head_dim, c.head_dim_v), 128);
}

/// Words that tell an item to the block, and how many items have a place: what is multiplied, and what comes next.
constexpr i32 kToldWords = 16, kToldItems = 2;

struct PrefillSm90Smem {
  int queries, keys, values, slots;
  int key_barriers, value_barriers;  // of the rings
  int item_barriers;                 // of the told items
  int query_barriers;                // full, free; and that of copies of values of which some become zeros
  int told;                          // items
  int ranks;                         // 32 words of the warp that finds items
  int bytes;
};
QN_HOST_DEVICE constexpr PrefillSm90Smem prefill_sm90_smem(const PrefillSm90Config& c) {
  const int queries = 0, keys = queries + c.warpgroups * tile_bytes(query_tile(c)),
            values = keys + c.stages * round_up(tile_bytes(key_tile(c)), 1024);
  const int slots = values + c.stages * round_up(tile_bytes(value_tile(c)), 1024), key_barriers = slots + c.slots * slot_bytes(c),
            ring = 16 * c.stages;
  const int item_barriers = key_barriers + 2 * ring, query_barriers = item_barriers + 16 * kToldItems;
  const int told = query_barriers + 32, ranks = told + 4 * kToldWords * kToldItems;
  return {queries, keys, values, slots, key_barriers, key_barriers + ring, item_barriers, query_barriers, told, ranks, ranks + 128};
}

}  // namespace quern::attention
