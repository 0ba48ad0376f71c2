// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>

#include "quern/base/api.h"

namespace quern::cli {

/// The quern command: what it does with these arguments, and its exit code. Throws nothing.
QN_API int command_line(int argc, char** argv);
/// Loads a library of users' own ops, which register themselves and their kernels' sources; it stays for good. Throws Error{value}.
QN_API void load_ops(const std::string& path);

}  // namespace quern::cli
