// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the variants of gemm.scaled for Hopper share.
#pragma once
#include "quern/bricks/gemm/plan.h"
#include "quern/bricks/gemm/sm90/many_rows.h"
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
/// Whether that kernel is the better one for up to 128 rows ((24576, 1536) takes 17.5 us with it for 64 rows, 15.1 us with the other for
/// 128), or chosen for more.
bool takes_few_rows(const Problem& problem, const DeviceInfo& device);
/// The kernels for more than 128 rows: tiles (by column_scales() kScaledSm90Tiles or kScaledOnceSm90Tiles), then kScaledSwappedTiles, then
/// kScaledNarrowTiles.
std::span<const Sm90Kernel> scaled_many_rows_kernels(i32 column_scales);
/// What the estimate reads of a problem.
Sm90Product scaled_product_of(const Problem& problem);
/// Time in ns of one of them by estimate, 1e300 where it cannot.
double scaled_many_rows_ns(const Problem& problem, const Sm90Kernel& kernel, i32 parts, const DeviceInfo& device);
/// That with the least time of those that the weight has (kernels_of_weight()), and the parts of K: one with batch_invariant.
ManyRowsChoice choose_scaled_many_rows(const Problem& problem, const DeviceInfo& device);
/// The tile of a kind that is chosen, or where another kind is the best of this one.
const Sm90Tile& scaled_many_rows_tile(const Problem& problem, Sm90Kind kind, const DeviceInfo& device);
/// Whether tiles of warp_specialised_sm90 can make the problem.
bool takes_tile(const Problem& problem, const Sm90Tile& tile);
/// Parameters with boxes of so many rows of a and b. The L2 fetches `fetched` bytes for a miss.
ScaledSm90Params sm90_params(const Call<ScaledArgs>& call, i32 box_a, i32 box_b, i32 fetched = 128);

}  // namespace quern::gemm
