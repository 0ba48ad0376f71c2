// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/sampling/filters/spec.h"

namespace quern::sampling {

struct VerifyChainConfig {
  FilterLayout layout;  // of rows of target_probs
  i32 certain;          // 1: drafts have no probabilities but 1
  i32 threads;
};

struct VerifyChainParams {
  const void* target;      // [batch, drafts + 1, vocab]
  const void* draft;       // [batch, drafts, vocab] or null
  const i32* ids;          // [batch, drafts]
  i32* out;                // [batch, drafts + 1]
  i32* accepted;           // [batch] or null
  i32* emitted;            // [batch] or null
  u8* valid;               // [batch] or null
  const i64* seeds;        // [batch] or null
  const i64* offsets;      // [batch] or null
  i64 target_stride, target_place_stride, draft_stride, draft_place_stride, ids_stride, out_stride;  // elements
  i64 batch, drafts, vocab;
  i64 seed, offset;
};

}  // namespace quern::sampling
