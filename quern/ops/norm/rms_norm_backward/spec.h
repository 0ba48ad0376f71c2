// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The kernels of rms_norm_backward: the rows, then the sum of the parts of dw.
#pragma once
#include "quern/kit/abi.h"

namespace quern::norm {

struct NormRowBackwardConfig {
  DType dtype;
  i32 with_dw;      // 1: each block also adds up dw of its rows
  i32 vector;       // elements of one access; divides hidden
  i32 held;         // units of 16 bytes of a thread, kept in registers; 0: read twice
  i32 row_threads;  // threads of a row: 32, or all of the block
  i32 threads;
  i32 min_blocks;   // resident blocks of an SM, by registers
};

struct NormRowBackwardParams {
  const void* dy;      // [tokens, hidden]
  const void* x;       // [tokens, hidden]
  const void* weight;  // [hidden]
  void* dx;            // [tokens, hidden]
  void* parts;         // [blocks, part_stride] f32: dw of each block's rows
  i64 dy_stride, x_stride, dx_stride, part_stride;  // elements from row to row
  i64 tokens;
  i64 hidden;
  float eps, weight_bias;
};

struct NormRowBackwardSmem {
  int reduce, dw, bytes;
};
/// A block a row: the warps' partial sums of a row's two sums. A warp a row: dw as it is handed from warp to warp, [held
/// units][elements][lanes].
QN_HOST_DEVICE constexpr NormRowBackwardSmem norm_row_backward_smem(const NormRowBackwardConfig& c) {
  const bool warps = c.row_threads == 32;
  const int reduce = warps ? 0 : 2 * 4 * (c.threads / 32);
  return {0, reduce, reduce + (warps && c.with_dw != 0 ? c.held * (16 / size_of(c.dtype)) * 32 * 4 : 0)};
}

struct NormSumPartsConfig {
  DType dtype;  // of dw
  i32 vector;   // columns of a thread: 4, or 1 where hidden is no multiple of 4
  i32 columns;  // threads side by side
  i32 threads;
};

struct NormSumPartsParams {
  const void* parts;  // [parts, part_stride] f32
  void* dw;           // [hidden]
  i64 part_stride, hidden, count;
};

/// One sum for each column and part lane.
QN_HOST_DEVICE constexpr int norm_sum_parts_smem(const NormSumPartsConfig& c) { return c.threads * c.vector * 4; }

}  // namespace quern::norm
