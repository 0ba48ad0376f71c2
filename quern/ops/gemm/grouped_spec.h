// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// gemm.grouped_contiguous and gemm.grouped_masked: the tiles of gemm.dense and gemm.scaled, whose groups are found on the device.
#pragma once
#include "quern/ops/gemm/scaled_spec.h"

namespace quern::gemm {

/// What says which rows a group has.
enum class GroupedRowsKind : i32 {
  counts,  ///< [groups]: rows of group g in its own matrix
  spans,   ///< [groups, 2]: begin and end, as grouped_spans writes them
  bounds,  ///< [groups + 1]: group g ends where g + 1 begins
  ends,    ///< [groups]: group g begins where g - 1 ended, rounded up to `alignment`
};

struct GroupedRows {
  const void* data;  // i32, see kind
  GroupedRowsKind kind;
  i32 groups;
  i32 rows;       // m, or max_m: bounds are cut to it
  i32 alignment;  // of ends
};

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

/// The ring, then the parameters of the group at hand.
QN_HOST_DEVICE constexpr int grouped_smem(const DenseConfig& c) { return dense_smem(c).bytes + int(sizeof(DenseParams)); }
QN_HOST_DEVICE constexpr int grouped_smem(const ScaledConfig& c) { return scaled_smem(c).bytes + int(sizeof(ScaledParams)); }

struct GroupedSpansConfig {
  i32 threads;
};

struct GroupedSpansParams {
  const void* group_of_row;  // i32 [m]
  void* spans;               // i32 [groups, 2]
  i32 m, groups, alignment;
};

}  // namespace quern::gemm
