// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>
#include <vector>

#include "quern/op/warm.h"

namespace quern::testing {

/// The calls that QN_TRACE recorded to a folder, for WarmOptions::calls: their kernels, with the sizes, strides, alignments and
/// hooks that they had. Throws Error{value} for a folder without calls, and for a record that cannot be read.
QN_API std::vector<WarmCall> warm_calls(const std::string& folder);

}  // namespace quern::testing
