// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/abi.h"

namespace quern::attention {

struct MergeStatesConfig {
  DType dtype;  // of v
  DType out_dtype;
  i32 vector;  // elements of one access
  i32 base_e;  // 1: lse is natural
  i32 threads;
};

struct MergeStatesParams {
  const void* v;                                 // [parts, tokens, heads, head_dim]
  const float* lse;                              // [parts, tokens, heads]
  const void* v_other;                           // [tokens, heads, head_dim] or null
  const float* lse_other;                        // [tokens, heads]
  const u8* mask;                                // [tokens] or null
  void* out;                                     // [tokens, heads, head_dim]
  float* out_lse;                                // [tokens, heads] or null
  i64 v_strides[3], lse_strides[3];              // elements: part, token, head
  i64 v_other_strides[2], lse_other_strides[2];  // token, head
  i64 out_strides[2], out_lse_strides[2];
  i64 mask_stride;
  i64 rows;  // tokens * heads
  i32 parts, heads, head_dim;
};

}  // namespace quern::attention
