// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/abi.h"

namespace quern::rope {

constexpr int kMaxPairs = 128;

struct RopeInplaceConfig {
  DType dtype;
  i32 interleaved;
  i32 pairs;    // of one thread; divides rotary_dim / 2
  i32 aligned;  // 1: a thread's elements are moved by whole accesses; 0: one by one
  i32 threads;
};

struct RopeInplaceParams {
  void* q;               // [tokens, heads_q, head_dim]
  void* k;               // [tokens, heads_kv, head_dim]
  const i32* positions;  // [tokens]
  i64 q_token_stride, q_head_stride, k_token_stride, k_head_stride;
  i64 tokens;
  i32 heads_q, heads_kv;
  i32 half;              // rotary_dim / 2: pairs of a head
  i32 unused;
  // Turns per position, f_i / (2 pi), as the sum of two floats
  float turns_high[kMaxPairs];
  float turns_low[kMaxPairs];
};

/// Sines, then cosines, of the token's pairs.
QN_HOST_DEVICE constexpr int rope_inplace_smem() { return 2 * 4 * kMaxPairs; }

}  // namespace quern::rope
