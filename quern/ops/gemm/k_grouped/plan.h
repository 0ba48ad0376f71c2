// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the variants of gemm.k_grouped share on the host.
#pragma once
#include "quern/op/schema.h"
#include "quern/ops/gemm/k_grouped.h"
#include "quern/ops/gemm/k_grouped/spec.h"

namespace quern::gemm {

/// Bounds below k are rounded down to multiples of it.
inline i64 k_grouped_unit(const Problem& p) {
  const i64 alignment = p.attr(&KGroupedArgs::alignment);
  return size_of(p.dtype(&KGroupedArgs::a)) == 1 ? round_up<i64>(alignment, kScaledGroup) : alignment;
}

/// What both launches are handed.
struct KGroupedColumns {
  Region maps;         ///< tensor maps of each group's operands; none where the kernel needs none
  Region spans;        ///< which columns each group has
  i32 rows_a, rows_b;  ///< of a tile, for the maps
};
/// What a launch that makes spans leaves to the next one.
struct KGroupedSpans {
  KGroupedColumns columns;
  i32 pdl;  ///< whether the next launch may overlap it
};
/// The launch that reads which columns each group has. With rows of a tile it makes the tensor maps too.
KGroupedSpans add_k_grouped_spans(Plan& plan, const Problem& problem, const DeviceInfo& device, i32 rows_a = 0, i32 rows_b = 0);
/// Map of an operand for tiles of so many rows.
TensorMap k_grouped_map(const Call<KGroupedArgs>& call, bool of_a, i32 rows);

inline DenseAddend c_of_first(const Call<KGroupedArgs>& call) {
  const TensorFacts& facts = call.problem.tensor(&KGroupedArgs::c);
  return {call.args.c.data, call.args.c.strides[1], facts.dtype, facts.alignment};
}
/// Bytes from group to group.
inline i64 group_bytes(const TensorView& v) { return v.strides[0] * size_of(v.dtype); }

}  // namespace quern::gemm
