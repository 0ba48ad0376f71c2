// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The two kernels of attention.decode_paged: decode_paged and decode_paged_combine.
#pragma once
#include "quern/kit/abi.h"
#include "quern/ops/attention/hooks_spec.h"

namespace quern::attention {

struct DecodePagedConfig {
  DType dtype;       // f16 or bf16
  i32 head_dim;      // a multiple of 16, at most 256
  i32 group_rows;    // 8 or 16: rows of the MMA tile that hold heads of a group
  i32 copy_bytes;    // 16, 8, 4 or 2: one copy from the caches, by their alignment
  i32 stages;        // tiles of each warp's ring
  i32 soft_cap;      // 1: logit = cap * tanh(logit / cap)
  i32 fixed_chunks;  // 1: a row is cut by its own length alone; 0: all rows are cut into equal shares of the blocks
  i32 threads;
  i32 min_blocks;
};

struct DecodePagedCombineConfig {
  DType dtype;
  i32 head_dim;
  i32 group_rows;
  i32 fixed_chunks;
  i32 threads;
};

/// Parameters of both kernels. Strides of the caches are bytes, all others elements.
struct DecodePagedParams {
  void* out;                // [batch, heads_q, head_dim]
  float* out_lse;           // [batch, heads_q] or null
  const void* q;            // [batch, heads_q, head_dim]
  const u8* k_cache;        // [pages, page_size, heads_kv, head_dim]
  const u8* v_cache;
  const i32* page_table;    // [batch, max_pages], or [page_indices] with page_indptr
  const i32* seq_lens;      // [batch], or null with page_indptr
  const i32* page_indptr;   // [batch + 1] or null
  const i32* last_page_len; // [batch] or null
  const float* sink;        // [heads_q] or null
  float* part_out;          // [slots, group_rows, head_dim]
  float* part_lse;          // [slots, group_rows]
  i32* leaders;             // [blocks, 4]: row, item, first block, last block of a cut item; row -1: none
  i64 out_row, out_head, lse_row, q_row, q_head, table_row;
  i64 k_page, k_token, k_head, v_page, v_token, v_head;
  i64 batch;
  i32 capacity;             // longest request, tokens
  i32 heads_q, heads_kv;
  i32 group;                // heads_q / heads_kv
  i32 head_tiles;           // MMA tiles of a group
  i32 max_splits;           // slots of an item, fixed_chunks
  i32 min_share;            // least units of a block
  i32 window_left;          // -1: none
  i32 q_pairs, out_pairs;   // 1: every row starts at a multiple of two elements
  float scale;              // of logits, natural units; with a soft cap divided by it
  float soft_cap;
  Divisor page_size;
  alignas(8) u8 hook_params[kHookParamBytes];
  HookTensor hook_tensors[kHookTensors];
};

/// Tokens of one warp's tile: k of the MMA that multiplies P and V.
constexpr i32 kWarpTokens = 16;
/// fixed_chunks: the least tokens and the most chunks of a row. 256 keeps 16 requests of 1024 on 512 blocks; 128 chunks
/// keep one request of 131072 on 1024.
constexpr i32 kChunkTokens = 256;
constexpr i32 kMostChunks = 128;
/// Most blocks of the first kernel: the combine's shared memory holds a weight for each.
constexpr i32 kMostBlocks = 2048;

/// fixed_chunks: tokens of a chunk of a row that sees `visible` tokens.
QN_HOST_DEVICE constexpr i32 chunk_tokens(i32 visible) {
  return max_of(kChunkTokens, round_up(ceil_div(visible, kMostChunks), 64));
}

struct DecodePagedSmem {
  int scan, states, queries, ring, warp_ring, stage, bytes;
};
/// Ring of a warp: stages of K then V, each kWarpTokens rows of head_dim without padding (16-byte chunks are swizzled). Its
/// memory also takes the warp's sums, group_rows rows of head_dim + 8 f32, when the warps are merged.
QN_HOST_DEVICE constexpr DecodePagedSmem decode_paged_smem(const DecodePagedConfig& c) {
  const int warps = c.threads / 32;
  const int stage = 2 * kWarpTokens * c.head_dim * 2;
  const int states = 64, queries = round_up(states + warps * 16 * 8, 128);
  const int ring = queries + c.group_rows * c.head_dim * 2;
  return {0, states, queries, ring, c.stages * stage, stage, ring + warps * c.stages * stage};
}

struct DecodePagedCombineSmem {
  int reduce, weights, sums, bytes;
};
QN_HOST_DEVICE constexpr DecodePagedCombineSmem decode_paged_combine_smem(const DecodePagedCombineConfig& c) {
  const int weights = 128, parts = c.fixed_chunks ? kMostChunks : kMostBlocks;
  return {0, weights, weights + 4 * parts, weights + 4 * parts + 16 * c.threads};
}

}  // namespace quern::attention
