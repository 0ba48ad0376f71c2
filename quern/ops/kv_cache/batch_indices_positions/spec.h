// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/abi.h"

namespace quern::kv_cache {

struct BatchIndicesPositionsConfig {
  DType out_dtype;  // i32 or i64
  DType indptr_dtype;
  DType seq_lens_dtype;
  i32 threads;
};

struct BatchIndicesPositionsParams {
  void* batch_indices;                                           // [tokens]
  void* positions;                                               // [tokens]
  const void* indptr;                                            // [batch + 1]
  const void* seq_lens;                                          // [batch]
  i64 batch_stride, position_stride, indptr_stride, seq_stride;  // elements
  i64 tokens;
  i64 batch;
};

}  // namespace quern::kv_cache
