// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Tiles by mma.sync through a ring of stages, on any GPU: ring.cuh.
#pragma once
#include "quern/bricks/gemm/ending_spec.h"
#include "quern/bricks/gemm/purpose_spec.h"

namespace quern::gemm {

struct DenseConfig {
  DType dtype;  // of a and b
  DType out_dtype;
  i32 vector;  // elements of one copy from a and b
  i32 tile_m;  // a block's part of out
  i32 tile_n;
  i32 tile_k;   // columns of a and b in one stage
  i32 stages;   // of the ring in shared memory
  i32 warps_m;  // the block's warps, laid over its part of out
  i32 warps_n;
  i32 sum_parts_in_block;  // 1: the block sums all splits of K one after another
  i32 threads;
  i32 min_blocks;
  i32 has_c;       // 1: c is added to what goes to out
  i32 activation;  // of what goes to out, an Activation
  Major a_major;
  Major b_major;
};

struct DenseParams {
  const void* a;                                       // [m, k]
  const void* b;                                       // [n, k]
  const void* bias;                                    // [n] or null
  void* out;                                           // [m, n]
  void* partials;                                      // f32 [splits, m, partial_stride], written instead of out; null: K is not split
  i64 a_stride, b_stride, out_stride, partial_stride;  // elements from row to row; of an MN-major operand, from k to k
  i64 m, n, k;
  i64 split_k;        // columns that one split sums; a multiple of every tile_k
  DType bias_dtype;   // f32, or that of a
  i32 out_alignment;  // bytes that every row of out is aligned to
  DenseAddend c;
};

struct DenseSmem {
  int a, b, stage, bytes;
};
/// A stage holds a tile of a, then one of b.
QN_HOST_DEVICE constexpr DenseSmem dense_smem(const DenseConfig& c) {
  const int a = c.tile_m * c.tile_k * 2, stage = a + c.tile_n * c.tile_k * 2;
  return {0, a, stage, stage * c.stages};
}

}  // namespace quern::gemm
