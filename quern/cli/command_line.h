// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/base/api.h"

namespace quern::cli {

/// The quern command: what it does with these arguments, and its exit code. Throws nothing.
QN_API int command_line(int argc, char** argv);

}  // namespace quern::cli
