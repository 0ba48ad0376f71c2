// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/schema.h"

namespace quern::gemm {

/// Variant warp_specialised_sm90 of gemm.dense.
Rejection rejects_sm90(const Problem& problem, const DeviceInfo& device);
Plan plan_sm90(const Problem& problem, const DeviceInfo& device, const Knobs& knobs);

}  // namespace quern::gemm
