// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Tiles of 8-bit operands with scales, by mma.sync through a ring of stages, on any GPU: scaled_ring.cuh.
#pragma once
#include "quern/bricks/gemm/ending_spec.h"
#include "quern/bricks/gemm/purpose_spec.h"
#include "quern/bricks/gemm/scales_spec.h"

namespace quern::gemm {

struct ScaledConfig {
  DType a_dtype;
  DType b_dtype;
  DType out_dtype;
  i32 vector;  // elements of one copy from a and b; below 4: 1
  i32 tile_m;  // a block's part of out
  i32 tile_n;
  i32 stages;   // of the ring in shared memory
  i32 warps_m;  // the block's warps, laid over its part of out
  i32 warps_n;
  i32 threads;
  i32 min_blocks;
};

struct ScaledParams {
  const void* a;     // [m, k]
  const void* b;     // [n, k]
  const void* bias;  // [n] or null
  void* out;         // [m, n]
  Scales scales_a, scales_b;
  DenseAddend c;
  i64 a_stride, b_stride, out_stride;  // elements from row to row
  i64 m, n, k;
  DType bias_dtype;   // bf16 or f32
  i32 out_alignment;  // bytes that every row of out is aligned to
};

struct ScaledSmem {
  int a, b, scales, stage, bytes;
};
/// A stage holds a tile of a, then one of b, a group of columns each, and the scales of their rows.
QN_HOST_DEVICE constexpr ScaledSmem scaled_smem(const ScaledConfig& c) {
  const int b = c.tile_m * kScaledGroup, scales = b + c.tile_n * kScaledGroup;
  const int stage = (scales + 4 * (c.tile_m + c.tile_n) + 127) / 128 * 128;
  return {0, b, scales, stage, stage * c.stages};
}

}  // namespace quern::gemm
