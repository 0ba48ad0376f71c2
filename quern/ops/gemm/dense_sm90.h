// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/schema.h"
#include "quern/ops/gemm/dense.h"
#include "quern/ops/gemm/dense_sm90_spec.h"

namespace quern::gemm {

/// Variant warp_specialised_sm90 of gemm.dense.
Rejection rejects_sm90(const Problem& problem, const DeviceInfo& device);
Plan plan_sm90(const Problem& problem, const DeviceInfo& device, const Knobs& knobs);
/// Variant swap_ab_sm90, for few rows of a.
Rejection rejects_swap_ab_sm90(const Problem& problem, const DeviceInfo& device);
Plan plan_swap_ab_sm90(const Problem& problem, const DeviceInfo& device, const Knobs& knobs);

// ---- what both share ----

/// Multiprocessors that kernels and variants are chosen for: those of an H100 or H200. GPUs of the arch with fewer run the same
/// kernels, so that one pack serves all; grids and splits of K are for the GPU at hand.
constexpr i32 kSm90Sms = 132;

/// Whether the operands are what tensor maps and whole 16-byte stores take.
Rejection rejects_sm90_operands(const Problem& problem, const DeviceInfo& device);
/// The tile, ring and threads of the kernels for few rows. By n and the rows of a tile of a alone, so that few kernels serve all m. A
/// block has a multiprocessor's shared memory for its ring, as long as there is a tile of b for each multiprocessor at most;
/// beyond, two blocks share one.
DenseSwapConfig swapped_tile(i64 m, i64 n, const DeviceInfo& device);
i64 swapped_tiles(const DenseSwapConfig& config, i64 m, i64 n);
/// The number of parts of K with which such a kernel takes least, while each has a multiprocessor; a row of a or b is `row_bytes`.
i32 swapped_splits(const DenseSwapConfig& config, i64 m, i64 n, i64 row_bytes, i64 sms);

/// Whether tiles of 128 x 128 would leave more than half of the multiprocessors idle, or most of each tile.
bool few_rows(const Problem& problem);
/// Parts of K with RunOptions::batch_invariant: from n and k alone, as swap_ab_sm90 would choose for 64 rows.
i32 invariant_parts(const Problem& problem, const DeviceInfo& device);
/// Map of an operand for tiles of `rows` rows, 128 bytes of K of each.
TensorMapSpec sm90_operand(const TensorView& operand, i32 rows, Major major = Major::k);
/// Parameters for tiles of `rows_a` rows of a and `rows_b` rows of b.
DenseSm90Params sm90_params(const Call<DenseArgs>& call, i32 rows_a, i32 rows_b, i32 parts);

}  // namespace quern::gemm
