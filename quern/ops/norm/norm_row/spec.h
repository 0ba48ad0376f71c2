// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The kernel of both norms: rms_norm, and fused_add_rms_norm with add_residual.
#pragma once
#include "quern/kit/abi.h"

namespace quern::norm {

struct NormRowConfig {
  DType dtype;
  i32 add_residual;  // 1: x += residual first, and the sum is stored into residual
  i32 vector;        // elements of one access; divides hidden
  i32 held;          // units of 16 bytes of a thread, kept in registers; 0: rows too long, read twice
  i32 row_threads;   // threads of a row: 32, or all of the block
  i32 threads;
  i32 min_blocks;  // resident blocks of an SM, which the grid counts on
};

struct NormRowParams {
  const void* x;                              // [tokens, hidden]
  const void* weight;                         // [hidden]
  void* residual;                             // [tokens, hidden] or null
  void* out;                                  // [tokens, hidden]
  i64 x_stride, residual_stride, out_stride;  // elements from row to row
  i64 tokens;
  i64 hidden;
  float eps;
};

/// Of norm_row_groups: out is e4m3.
struct NormRowGroupsParams {
  NormRowParams row;
  void* scales;  // [tokens, ceil(hidden / 128)] f32
  i64 scale_strides[2];
  float amax_floor;
  i32 unused;
};

/// A block has a row, and holds it in registers.
QN_HOST_DEVICE constexpr bool block_holds_row(const NormRowConfig& c) { return c.held > 0 && c.row_threads == c.threads; }
/// The weight is copied into shared memory, and not into registers, where x, the residual and the weight would spill 32 bytes at 64
/// registers a thread.
QN_HOST_DEVICE constexpr bool stages_weight(const NormRowConfig& c) { return block_holds_row(c) && c.add_residual != 0; }

struct NormRowSmem {
  int reduce, weight, bytes;
};
/// Two slots, used in turn by consecutive rows, so that one barrier a row is enough. Then the units of the weight.
QN_HOST_DEVICE constexpr NormRowSmem norm_row_smem(const NormRowConfig& c) {
  const int reduce = c.row_threads == 32 ? 0 : 2 * 4 * (c.threads / 32);
  return {0, reduce, reduce + (stages_weight(c) ? 16 * c.held * c.threads : 0)};
}

}  // namespace quern::norm
