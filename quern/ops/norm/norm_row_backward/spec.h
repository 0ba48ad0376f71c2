// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The kernel of the gradients of all norms of rows. The sums over rows are added up by bricks/parts.
#pragma once
#include "quern/kit/abi.h"

namespace quern::norm {

struct NormRowBackwardConfig {
  DType dtype;
  DType weight_dtype;
  i32 centred;       // 1: of layer_norm
  i32 with_weight;   // 0: there is none
  i32 add_gradient;  // 1: dx grows by the gradient of the residual
  i32 with_dw;       // 1: each block also adds up dw of its rows
  i32 with_dbias;    // 1: and dbias
  i32 vector;        // elements of one access; divides hidden
  i32 held;          // units of 16 bytes of a thread, kept in registers; 0: read for each pass
  i32 row_threads;   // threads of a row: 32, or all of the block
  i32 threads;
  i32 min_blocks;  // resident blocks of an SM, by registers
};

struct NormRowBackwardParams {
  const void* dy;                                                     // [tokens, hidden]
  const void* x;                                                      // [tokens, hidden]
  const void* weight;                                                 // [hidden] or null
  const void* dresidual;                                              // [tokens, hidden] or null
  void* dx;                                                           // [tokens, hidden]
  void* parts;                                                        // [blocks, part_stride] f32: dw of each block's rows
  i64 dy_stride, x_stride, dresidual_stride, dx_stride, part_stride;  // elements from row to row
  i64 dbias_part;                                                     // elements from a part of dw to that of dbias
  i64 tokens;
  i64 hidden;
  float eps, weight_bias;
};

/// Sums over rows that a block makes.
QN_HOST_DEVICE constexpr int row_sums(const NormRowBackwardConfig& c) { return (c.with_dw != 0) + (c.with_dbias != 0); }

/// Registers hold the next row as well. Of the fullest form 64 bytes would spill.
QN_HOST_DEVICE constexpr bool loads_ahead(const NormRowBackwardConfig& c) {
  const bool full = c.centred != 0 && c.add_gradient != 0 && row_sums(c) == 2 && size_of(c.dtype) == 2;
  return c.held <= (full ? 1 : 2);
}

struct NormRowBackwardSmem {
  int reduce, sums, bytes;
};
/// A block a row: the warps' partial sums of a row, two at a time. A warp a row: dw and dbias as they are handed from warp to warp, one
/// after the other, [held units][elements][lanes].
QN_HOST_DEVICE constexpr NormRowBackwardSmem norm_row_backward_smem(const NormRowBackwardConfig& c) {
  const bool warps = c.row_threads == 32;
  const int reduce = warps ? 0 : 2 * 4 * (c.threads / 32);
  return {0, reduce, reduce + (warps && row_sums(c) > 0 ? c.held * (16 / size_of(c.dtype)) * 32 * 4 : 0)};
}

}  // namespace quern::norm
