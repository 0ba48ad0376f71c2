// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Products of groups of rows, whose bounds lie on the device.
#pragma once
#include "quern/bricks/gemm/mma/ring_spec.h"
#include "quern/bricks/gemm/mma/scaled_ring_spec.h"

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

/// The ring, then the parameters of the group at hand.
QN_HOST_DEVICE constexpr int grouped_smem(const DenseConfig& c) { return dense_smem(c).bytes + int(sizeof(DenseParams)); }
QN_HOST_DEVICE constexpr int grouped_smem(const ScaledConfig& c) { return scaled_smem(c).bytes + int(sizeof(ScaledParams)); }

}  // namespace quern::gemm
