// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/schema.h"
#include "quern/ops/gemm/dense_sm90.h"
#include "quern/ops/gemm/scaled.h"
#include "quern/ops/gemm/scaled_sm90_spec.h"

namespace quern::gemm {

Scales scales_of(const TensorView& view, i64 rows);
/// Of an element of out, by the portable kernel or by wgmma.
Budget scaled_budget(DType out, i64 k, bool portable);

/// Tiles of scaled products: 64 rows of more than 192 columns are more sums than a thread has registers for twice. The wide ones load less for their
/// products; that of 128 columns scales the products of a stage while those of the next are in the tensor cores. Costs are those of an H100 at
/// m = 4096 and the six (n, k) of the README, and 8192^3, beside 192 columns: of 128 columns 1.04 to 1.12, of pairs, which read less of b from the L2, 0.96 to 1.01, of 256 rows 0.97 to 1.03, of 176 columns 1.02 to 1.06 and more
/// for their stores, which are the lanes' (with c or results of f32 all tiles' are). Which is the fastest follows from the multiprocessors that idle in the last round (README).
/// Of 256 rows, for results of 16 bits and no c: 128 of each warpgroup, whose sums leave no room for a second set of products.
constexpr Sm90Tile kScaledSm90Tiles[] = {{192, 4, 1}, {.n = 192, .stages = 4, .cost = 0.99, .pair = true}, {128, 6, 1.05}, {128, 3, 1.015, false, 256}, {.n = 176, .stages = 5, .cost = 1.035, .store = 130}};
/// The same with scales of all of K: of 128 columns 0.98 to 1.13, the more the longer K is, of 256 rows 1.00 to 1.03, of 176 columns 1.01 to 1.03; of pairs, beside cuBLASLt on an H200, 0.97 to 1.01.
constexpr Sm90Tile kScaledOnceSm90Tiles[] = {{192, 4, 1}, {.n = 192, .stages = 4, .cost = 0.99, .pair = true}, {.n = 176, .stages = 5, .cost = 1.02, .store = 130}, {128, 6, 1.04}, {128, 4, 1.005, false, 256}};
/// With a scale of each row of b for each stage.
constexpr Sm90Tile kColumnScaledSm90Tiles[] = {{128, 6, 1}};

/// Of scales of a [rows, ceil(k / 128)], or of groups of them; unused where they do not lie so.
ScaleBoxes scale_boxes(const TensorView& scales, i64 rows, i64 k, Device& device);

/// gemm.dense's swapped_tile(), for two sets of sums: up to 64 rows two blocks share a multiprocessor, so that one multiplies while the other scales.
DenseSwapConfig scaled_swapped_tile(i64 m, i64 n, const DeviceInfo& device);

/// Variant warp_specialised_sm90 of gemm.scaled; it and swap_ab_sm90 take what rejects_scaled_sm90_operands() does.
Rejection rejects_scaled_sm90_operands(const Problem& problem, const DeviceInfo& device);
Rejection slower_scaled_sm90(const Problem& problem, const DeviceInfo& device);
Plan plan_scaled_sm90(const Problem& problem, const DeviceInfo& device);
/// Variant narrow_sm90, for few rows of a, tiles of n / 132 columns.
Rejection rejects_scaled_narrow_sm90(const Problem& problem, const DeviceInfo& device);
Rejection slower_scaled_narrow_sm90(const Problem& problem, const DeviceInfo& device);
Plan plan_scaled_narrow_sm90(const Problem& problem, const DeviceInfo& device);
/// Variant swap_ab_sm90, for few rows of a.
Rejection slower_scaled_swap_ab_sm90(const Problem& problem, const DeviceInfo& device);
Plan plan_scaled_swap_ab_sm90(const Problem& problem, const DeviceInfo& device);

}  // namespace quern::gemm
