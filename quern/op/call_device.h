// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/schema.h"

namespace quern {

/// Where the call runs: options.device, else the device of its tensors. Throws Error{value} when the tensors lie elsewhere.
QN_API Device& device_of_call(const Op& op, const Problem& problem, const RunOptions& options);

}  // namespace quern
