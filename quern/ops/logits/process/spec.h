// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/bricks/rows/spec.h"
#include "quern/ops/logits/past_mask_spec.h"

namespace quern::logits {

/// Where a row's earlier tokens stand. The values enter compile keys: append, never renumber.
enum class TokenState : i32 { none, slots, lists };
/// How a row's bias is given.
enum class BiasForm : i32 { none, dense, list };

struct ProcessConfig {
  DType dtype;
  DType token_dtype;  // of lists of tokens: i32 or i64; i32 without lists
  TokenState state;
  BiasForm bias;
  rows::RowChunks chunks;
  i32 threads;
};

/// Columns of a chunk, whatever the width of an access: a row of 128256 bf16 logits makes 63 blocks.
constexpr i32 kProcessColumns = 2048;

/// Byte offsets of what a block gathers from lists for the columns of its chunk: u32 each.
struct ProcessSmem {
  int counts, prompt, bias, bytes;
};
QN_HOST_DEVICE constexpr ProcessSmem process_smem(TokenState state, BiasForm bias) {
  const int row = 4 * kProcessColumns, lists = state == TokenState::lists ? 2 * row : 0;
  return {0, row, lists, lists + (bias == BiasForm::list ? row : 0)};
}

struct ProcessParams {
  const void* logits;         // [rows, vocab]
  void* out;                  // [rows, vocab]
  const u32* bitmask;         // [masks, mask_words] or null
  const i32* mask_rows;       // [rows] or null
  const float* bias;          // [bias_rows, vocab] or null
  const i32* bias_ids;        // [rows, biased] or null
  const float* bias_values;   // [rows, biased] or null
  const i32* counts;          // [slots, vocab] or null
  const u32* prompt_bits;     // [slots, ceil(vocab / 32)] or null
  const i32* slots;           // [rows] or null
  const void* prompt_tokens;  // [rows, prompt_length] or null
  const void* output_tokens;  // [rows, output_length] or null
  const float* repetitions;   // [rows] or null
  const float* frequencies;   // [rows] or null
  const float* presences;     // [rows] or null
  i64 rows, vocab, masks, mask_words, biased, slot_rows, prompt_length, output_length;
  // Elements from row to row; of bias 0 where one row stands for all
  i64 logits_stride, out_stride, bitmask_stride, bias_stride, bias_ids_stride, bias_values_stride, counts_stride, prompt_bits_stride,
      prompt_tokens_stride, output_tokens_stride;
  float soft_cap, repetition, frequency, presence;
  PastMask past_mask;
  i32 unused;
};

}  // namespace quern::logits
