// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The grouped products on Hopper: tiles, ring and stores of gemm.dense's and gemm.scaled's kernels, whose Configs they have.
#pragma once
#include "quern/ops/gemm/grouped_spec.h"
#include "quern/ops/gemm/scaled_sm90_spec.h"

namespace quern::gemm {

struct GroupedSm90Params {
  TensorMap a;       // boxes of tile_m rows, 128 bytes of each; one matrix, or one for each group
  TensorMap b;       // the same of tile_n rows, of pairs half of them; a matrix for each group
  GroupedRows rows;
  void* out;         // rows aligned to 16 bytes
  i64 out_stride;    // elements from row to row
  i64 out_group;     // elements from group to group; 0 where groups lie in one matrix
  i32 n, k;          // n a multiple of 8
  TensorMap results; // of out [matrices, rows, n], where they leave by TMA
  i32 a_rows, b_rows; // from a matrix to the next: maps of the rows of all of them, [rows, k]; 0, where these are no whole rows: [matrices, rows, k]
};

struct GroupedScaledSm90Params {
  GroupedSm90Params gemm;
  Scales scales_a, scales_b;
  i64 scales_a_group, scales_b_group;
  ScaleBoxes boxes;  // of scales_a
};

}  // namespace quern::gemm
