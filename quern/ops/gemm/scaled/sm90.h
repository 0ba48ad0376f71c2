// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the variants of gemm.scaled for Hopper share.
#pragma once
#include "quern/bricks/gemm/plan.h"
#include "quern/bricks/gemm/sm90/scaled_plan.h"
#include "quern/op/variants.h"
#include "quern/ops/gemm/scaled/call.h"

namespace quern::gemm {

/// Whether the operands are what tensor maps and whole 16-byte stores take.
Rejection rejects_scaled_sm90_operands(const Problem& problem, const DeviceInfo& device);
/// A bias and c that are not f32 are bf16.
Ending ending_of(const Problem& problem);
/// ScaledSm90's. One group of columns is no reason for other kernels than those of a model's longer K.
i32 column_scales(const Problem& problem);
/// Rows of the widest tile of the kernel for few rows: a thread has two sets of sums, and two blocks share the registers where b is
/// wide.
i64 most_swapped_rows(const Problem& problem);
/// Whether that kernel is the better one: (24576, 1536) takes 17.5 us with it for 64 rows, 15.1 us with the other for 128.
bool takes_few_rows(const Problem& problem);
/// Parameters with boxes of so many rows of a and b. The L2 fetches `fetched` bytes for a miss.
ScaledSm90Params sm90_params(const Call<ScaledArgs>& call, i32 box_a, i32 box_b, i32 fetched = 128);

}  // namespace quern::gemm
