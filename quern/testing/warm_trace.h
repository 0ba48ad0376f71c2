// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>
#include <vector>

#include "quern/op/warm.h"

namespace quern::testing {

/// The calls that QN_TRACE recorded to a folder, for WarmOptions::calls: their kernels, with the sizes, strides, alignments and
/// hooks that they had. Throws Error{value} for a folder without calls, for a record that cannot be read, and, unless
/// `trust_hooks`, for one with hooks that no registered op has: they are code of whoever wrote the folder.
QN_API std::vector<WarmCall> warm_calls(const std::string& folder, bool trust_hooks = false);

}  // namespace quern::testing
