// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/sampling/filters/spec.h"

namespace quern::sampling {

struct VerifyChainConfig {
  FilterLayout layout;  // of the target's rows
  i32 certain;          // 1: drafts have no probabilities but 1
  i32 threads;
};

/// Both kernels read these.
struct VerifyChainParams {
  const void* target;                                                                                // [batch, drafts + 1, vocab]
  const void* draft;                                                                                 // [batch, drafts, vocab] or null
  const i32* ids;                                                                                    // [batch, drafts]
  i32* out;                                                                                          // [batch, drafts + 1]
  i32* accepted;                                                                                     // [batch] or null
  i32* emitted;                                                                                      // [batch] or null
  u8* valid;                                                                                         // [batch] or null
  const i64* seeds;                                                                                  // [batch] or null
  const i64* offsets;                                                                                // [batch] or null
  const float* temperatures;                                                                         // of logits: [batch] or null
  StoredShares* shares;                                                                              // of logits: [batch, chain_rows]
  i64 target_stride, target_place_stride, draft_stride, draft_place_stride, ids_stride, out_stride;  // elements
  i64 batch, drafts, vocab;
  i64 seed, offset;
  float temperature;
  i32 unused;
};

/// Rows of a request: the target's at each place, then the drafts'.
QN_HOST_DEVICE constexpr i64 chain_rows(i64 drafts, bool certain) { return certain ? drafts + 1 : 2 * drafts + 1; }

}  // namespace quern::sampling
