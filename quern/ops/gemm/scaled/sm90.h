// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/bricks/gemm/plan.h"
#include "quern/bricks/gemm/sm90/scaled_plan.h"
#include "quern/op/schema.h"
#include "quern/ops/gemm/scaled.h"

namespace quern::gemm {

/// Of an operand with `rows` rows.
Scales scales_of(const TensorView& view, i64 rows);

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
