// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/schema.h"
#include "quern/ops/gemm/scaled.h"
#include "quern/ops/gemm/scaled_spec.h"

namespace quern::gemm {

Scales scales_of(const TensorView& view, i64 rows);
/// Of an element of out, by the portable kernel or by wgmma.
Budget scaled_budget(DType out, i64 k, bool portable);

/// Variant warp_specialised_sm90 of gemm.scaled.
Rejection rejects_scaled_sm90(const Problem& problem, const DeviceInfo& device);
Plan plan_scaled_sm90(const Problem& problem, const DeviceInfo& device, const Knobs& knobs);
/// Variant swap_ab_sm90, for few rows of a, and for scales of each row of b and 128 columns.
Rejection rejects_scaled_swap_ab_sm90(const Problem& problem, const DeviceInfo& device);
Plan plan_scaled_swap_ab_sm90(const Problem& problem, const DeviceInfo& device, const Knobs& knobs);

}  // namespace quern::gemm
