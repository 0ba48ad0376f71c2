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

/// The launch that reads which columns each group has, and (maps) makes the tensor maps. Returns whether the next launch may overlap it.
i32 add_k_grouped_spans(Plan& plan, const Problem& problem, const DeviceInfo& device, bool maps);
/// Where the workspace has the columns of each group.
const void* k_grouped_spans_of(const Call<KGroupedArgs>& call, bool maps);
/// Map of an operand for its tiles in the launch behind.
TensorMap k_grouped_map(const Call<KGroupedArgs>& call, bool of_a);

inline DenseAddend c_of_first(const Call<KGroupedArgs>& call) {
  const TensorFacts& facts = call.problem.tensor(&KGroupedArgs::c);
  return {call.args.c.data, call.args.c.strides[1], facts.dtype, facts.alignment};
}
/// Bytes from group to group.
inline i64 group_bytes(const TensorView& v) { return v.strides[0] * size_of(v.dtype); }

/// Variant warp_specialised_sm90.
Rejection rejects_k_grouped_sm90(const Problem& problem, const DeviceInfo& device);
Plan plan_k_grouped_sm90(const Problem& problem, const DeviceInfo& device, const Knobs& knobs);
/// In the order of the op's variants.
enum : i32 { kKGroupedWarpSpecialised, kKGroupedPortable };

}  // namespace quern::gemm
