// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>

namespace quern::cli {

/// What a user should know who works in a checkout of quern whose kernel sources are not those that this program carries and compiles;
/// empty: nothing. `folder` is where the user works.
std::string source_note(const std::string& folder);
/// Prints it on stderr, once a process, where QN_SOURCE_DIR is not set.
void print_source_note();

}  // namespace quern::cli
