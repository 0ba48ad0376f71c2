// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/bricks/rows/spec.h"
#include "quern/ops/quant/bit_order_spec.h"

namespace quern::quant {

/// Of the launch that computes out_indptr.
struct SegmentOffsetsConfig {
  DType indptr_dtype;
  i32 threads;
};

struct SegmentPackbitsConfig {
  BitOrder order;
  DType indptr_dtype;
  rows::RowChunks chunks;  // of bytes of out
  i32 threads;
};

struct SegmentPackbitsParams {
  const void* x;       // [bits] u8
  const void* indptr;  // [segments + 1]
  void* out;           // [bytes] u8
  void* out_indptr;    // [segments + 1] like indptr
  i64 indptr_stride;
  i64 bits, segments, bytes;
};

/// A sum of each warp.
QN_HOST_DEVICE constexpr int segment_offsets_smem_bytes(i32 threads) { return 4 * (threads / 32); }

}  // namespace quern::quant
