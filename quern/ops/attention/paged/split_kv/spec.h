// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The two kernels of split KV, for requests of few rows: paged_split_kv and paged_combine.
#pragma once
#include "quern/ops/attention/attend_spec.h"

namespace quern::attention {

struct SplitKvConfig {
  DType dtype;     // of products: f16 or bf16
  DType q_dtype;   // dtype, or e4m3 or e5m2 beside f16
  DType kv_dtype;  // dtype, or e4m3 or e5m2
  DType out_dtype;
  DType lens_dtype;  // of seq_lens: i32 or i64
  i32 head_dim;      // a multiple of 16, at most 256
  i32 group_rows;    // 8 or 16: rows of the MMA tile that hold query tokens times heads of a group
  i32 copy_bytes;    // 16, 8, 4, 2 or 1: one access to the caches, by their alignment
  i32 stages;        // tiles of each warp's ring
  i32 soft_cap;      // 1: logit = cap * tanh(logit / cap)
  i32 bits;          // 1: a packed mask
  i32 scales;        // 1: q_scale or k_scale is given
  KeyPlaces places;
  i32 several;       // 1: requests have q_indptr's query tokens, and those of more rows are another kernel's; 0: one token each
  i32 fixed_chunks;  // 1: a row is cut by its own length alone; 0: all rows are cut into equal shares of the blocks
  i32 threads;
  i32 min_blocks;
};

struct CombineConfig {
  DType dtype, out_dtype, lens_dtype;
  i32 head_dim;
  i32 group_rows;
  KeyPlaces places;
  i32 several;
  i32 fixed_chunks;
  i32 threads;
};

/// Parameters of both kernels.
struct SplitKvParams : AttendParams {
  float* part_out;  // [slots, group_rows, head_dim]
  float* part_lse;  // [slots, group_rows]
  i32* leaders;     // [blocks, 4]: request, item, first block, last block of a cut item; request -1: none
  i32 head_tiles;   // MMA tiles of a group
  i32 max_splits;   // slots of an item, fixed_chunks
  i32 min_share;    // least units of a block
  i32 q_pairs;      // 1: every row of q starts at a multiple of two elements
};

/// Tokens of one warp's tile: k of the MMA that multiplies P and V.
constexpr i32 kWarpTokens = 16;
/// Most rows of a request of several query tokens: one tile of the MMA.
constexpr i32 kFewRows = 16;
QN_HOST_DEVICE constexpr i32 most_rows(const SplitKvConfig&) { return kFewRows; }
QN_HOST_DEVICE constexpr i32 most_rows(const CombineConfig&) { return kFewRows; }
/// fixed_chunks: the least tokens and the most chunks of a row. 256 keeps 16 requests of 1024 on 512 blocks; 128 chunks
/// keep one request of 131072 on 1024.
constexpr i32 kChunkTokens = 256;
constexpr i32 kMostChunks = 128;
/// Most blocks of the first kernel: the combine's shared memory holds a weight for each.
constexpr i32 kMostBlocks = 2048;

/// fixed_chunks: tokens of a chunk of a request that sees `visible` tokens.
QN_HOST_DEVICE constexpr i32 chunk_tokens(i32 visible) { return max_of(kChunkTokens, round_up(ceil_div(visible, kMostChunks), 64)); }

struct SplitKvSmem {
  int scan, states, queries, ring, warp_ring, stage, bytes;
};
/// Ring of a warp: stages of K then V, each kWarpTokens rows of head_dim without padding (16-byte chunks are swizzled). Its
/// memory also takes the warp's sums, group_rows rows of head_dim + 8 f32, when the warps are merged.
QN_HOST_DEVICE constexpr SplitKvSmem split_kv_smem(const SplitKvConfig& c) {
  const int warps = c.threads / 32;
  const int stage = 2 * kWarpTokens * c.head_dim * 2;
  const int states = 64, queries = round_up(states + warps * 16 * 8, 128);
  const int ring = queries + c.group_rows * c.head_dim * 2;
  return {0, states, queries, ring, c.stages * stage, stage, ring + warps * c.stages * stage};
}

struct CombineSmem {
  int reduce, weights, sums, bytes;
};
QN_HOST_DEVICE constexpr CombineSmem combine_smem(const CombineConfig& c) {
  const int weights = 128, parts = c.fixed_chunks ? kMostChunks : kMostBlocks;
  return {0, weights, weights + 4 * parts, weights + 4 * parts + 16 * c.threads};
}

}  // namespace quern::attention
