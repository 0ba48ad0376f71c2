// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the host says of sums that blocks make in parts, and that a second kernel adds up in a fixed order.
#pragma once
#include "quern/bricks/parts/spec.h"
#include "quern/op/plan.h"

namespace quern::parts {

extern const jit::Kernel<SumPartsConfig, SumPartsParams> sum_parts_kernel;

/// Elements of one part of so many columns: whole 64 bytes.
inline i64 part_elements(i64 columns) { return round_up<i64>(columns, 16); }
inline SumPartsConfig sum_parts_config(DType dtype, i64 columns) { return {dtype, columns % 4 ? 1 : 4, 32, 256}; }
/// The same where the columns are tokens, whose number chooses no kernel.
inline SumPartsConfig sum_token_parts_config(DType dtype) { return {dtype, 1, 32, 256}; }
/// `after`: a launch of this call comes before. Where the GPU can (sm_90), blocks are scheduled while the last of that one run; they wait
/// before they read.
inline Grid sum_parts_grid(const SumPartsConfig& c, i64 columns, i32 sums, bool after, const Problem& p, const DeviceInfo& device) {
  return {.x = ceil_div<i64>(columns, sum_parts_columns(c)),
          .y = sums,
          .smem = sum_parts_smem(c),
          .pdl = after ? i32(device.arch.number >= 90) : p.pdl};
}

}  // namespace quern::parts
