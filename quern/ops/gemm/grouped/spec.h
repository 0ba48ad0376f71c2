// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// gemm.grouped_contiguous and gemm.grouped_masked: the tiles of gemm.dense and gemm.scaled, whose groups are found on the device.
#pragma once
#include "quern/bricks/gemm/groups/spec.h"

namespace quern::gemm {

struct GroupedDenseParams {
  DenseParams gemm;  // of group 0; m and k_begin are a group's own
  GroupedRows rows;
  i64 a_group, b_group, out_group;  // elements from group to group; 0 where groups lie in one matrix
};

struct GroupedScaledParams {
  ScaledParams gemm;
  GroupedRows rows;
  i64 a_group, b_group, out_group;
  i64 scales_a_group, scales_b_group;
};

struct GroupedSpansConfig {
  i32 threads;
};

struct GroupedSpansParams {
  const void* group_of_row;  // i32 [m]
  void* spans;               // i32 [groups, 2]
  i32 m, groups, alignment;
};

}  // namespace quern::gemm
