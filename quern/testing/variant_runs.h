// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>

#include "quern/op/schema.h"

namespace quern::testing {

/// Whether the variant runs some problem on the device: one of those that the op's checks and benchmarks state.
/// Throws Error{value} for a name that the op does not have.
QN_API bool variant_runs(const Op& op, const std::string& variant, const DeviceInfo& device);

}  // namespace quern::testing
