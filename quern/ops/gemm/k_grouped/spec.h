// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// gemm.k_grouped: the tiles of gemm.dense and gemm.scaled, each of a group of the columns of K. A launch before the others reads
// which columns each group has.
#pragma once
#include "quern/bricks/gemm/groups/spec.h"
#include "quern/bricks/gemm/sm90/scaled_spec.h"

namespace quern::gemm {

struct KGroupedSpansConfig {
  i32 threads;
  i32 maps;  // 1: makes the tensor maps of each group's operands
};

/// An operand of which a group has some columns.
struct KGroupedOperand {
  TensorMap map;     // of all columns
  const void* data;  // of column 0
  i64 column_bytes;  // by which a group begins later for each column before it
  Major major;
  i32 packed;  // 1: rows of a group are as long as it has columns
};

struct KGroupedSpansParams {
  KGroupedOperand a, b;  // where maps are made
  const void* given;     // i32 [groups + 1]: where each group begins, and where the last ends; or [groups], see sizes
  void* spans;           // i32 [groups, 2]: the first column of each group, and their number
  void* maps;            // TensorMap [groups, 2]: of a and b; of a group without columns they are not written
  i32 sizes;             // 1: `given` has the numbers of columns
  i32 groups, k;
  i32 unit;  // bounds below k are rounded down to multiples of it
};

/// Bytes of the maps, behind which the spans are.
QN_HOST_DEVICE constexpr i64 k_grouped_maps_bytes(i64 groups) { return 2 * groups * i64(sizeof(TensorMap)); }

struct KGroupedDenseParams {
  DenseParams gemm;  // of a group that begins at column 0; k and split_k are a group's own
  const void* spans;
  i64 a_column, b_column;  // elements by which a group begins later for each column before it
  i64 out_group, c_group;  // bytes from group to group
  i32 groups;
};

struct KGroupedScaledParams {
  ScaledParams gemm;  // likewise
  const void* spans;
  i64 a_column, b_column;
  i64 out_group, c_group;
  i32 groups;
  i32 packed;  // 1: rows of a group are as long as it has columns
};

struct KGroupedSm90Params {
  const void* maps;  // TensorMap [groups, 2]
  const void* spans;
  void* out;               // [groups, m, n], rows aligned to 16 bytes
  i64 out_stride;          // elements from row to row
  i64 out_group, c_group;  // bytes from group to group
  i32 groups, m, n;        // n a multiple of 8
  DenseAddend c;           // of group 0, rows aligned to 16 bytes
  TensorMap results;       // of out, where they leave by TMA
};

struct KGroupedScaledSm90Params {
  KGroupedSm90Params gemm;
  Scales scales_a, scales_b;  // from column 0 on
};

}  // namespace quern::gemm
