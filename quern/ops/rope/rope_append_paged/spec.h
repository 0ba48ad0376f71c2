// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/bricks/paged/spec.h"
#include "quern/ops/rope/rotate/spec.h"

namespace quern::rope {

struct RopeAppendPagedConfig {
  AngleConfig angles;
  HeadConfig head;
  paged::Places places;
  DType place_dtype;  // i32 or i64, of batch_indices and positions, or of slot_mapping
  DType cache_dtype;
  i32 norm;  // 1: heads of q, of k or of both are normalised
  DType weight_dtype;
  i32 in_flight;  // heads of a lane that are loaded before the first is stored
  i32 threads;
};

/// Strides in elements of the tensor.
struct RopeAppendPagedParams {
  AngleParams angles;
  paged::PlaceParams place;
  const void* q;         // [tokens, heads_q, head_dim]
  const void* k;         // [tokens, heads_kv, head_dim]
  const void* v;         // [tokens, heads_kv, head_dim]
  void* q_out;           // like q, or q itself
  void* k_cache;         // [pages, page_size, heads_kv, head_dim]
  void* v_cache;         // [pages, page_size, heads_kv, head_dim]
  const void* q_weight;  // [head_dim] or null: no norm
  const void* k_weight;
  const float* k_scale;  // of each head or of all, or null: 1
  const float* v_scale;
  i64 q_token_stride, q_head_stride, k_token_stride, k_head_stride, v_token_stride, v_head_stride, q_out_token_stride, q_out_head_stride;
  i64 k_page_stride, k_slot_stride, k_cache_head_stride, v_page_stride, v_slot_stride, v_cache_head_stride;
  i64 k_scale_stride, v_scale_stride;  // 0: one scale for all heads
  i64 tokens;
  i32 heads_q, heads_kv, head_dim;
  i32 parts;  // of a token: part i has heads i, i + parts, .. of q, then k, then v
  float eps, weight_bias;
};

}  // namespace quern::rope
