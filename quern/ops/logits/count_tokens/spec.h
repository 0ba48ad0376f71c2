// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/abi.h"

namespace quern::logits {

struct CountTokensConfig {
  DType id_dtype;  // i32 or i64
  i32 threads;
};

struct CountTokensParams {
  u32* counts;                            // [slots, vocab] or null
  u32* prompt_bits;                       // [slots, ceil(vocab / 32)] or null
  const void* ids;                        // [tokens]
  const i32* slots;                       // [tokens]
  i64 counts_stride, prompt_bits_stride;  // elements from row to row
  i64 tokens, slot_rows, vocab;
};

}  // namespace quern::logits
