// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/rope/rotate/spec.h"

namespace quern::rope {

struct RopeQuantiseFp8Config {
  AngleConfig angles;
  HeadConfig head;
  DType out_dtype;
  i32 nope;       // 1: q, k or both have a part that is not rotated
  i32 in_flight;  // heads of a lane that are loaded before the first is stored
  i32 threads;
};

/// What a kernel reads and writes of q or of k. Strides in elements.
struct QuantisedHeads {
  const void* rope;    // [tokens, heads, head_dim]
  const void* nope;    // [tokens, heads, nope_dim] or null
  void* rope_out;      // like rope, in FP8
  void* nope_out;      // like nope, in FP8
  const float* scale;  // [1] or null: 1
  i64 token_stride, head_stride, nope_token_stride, nope_head_stride;
  i64 out_token_stride, out_head_stride, nope_out_token_stride, nope_out_head_stride;
  i64 nope_dim;
};

struct RopeQuantiseFp8Params {
  AngleParams angles;
  QuantisedHeads q, k;
  i64 tokens;
  i32 heads_q, heads_kv, head_dim;
  i32 parts;  // of a token: part i has heads i, i + parts, ..
};

}  // namespace quern::rope
