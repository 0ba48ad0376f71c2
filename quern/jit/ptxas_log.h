// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>

#include "quern/jit/compiler.h"

namespace quern::jit {

/// Reads registers, spills, stack, warnings and the two losses that ptxas only remarks on out of result.log, as
/// `--ptxas-options=-v` makes NVRTC write it. Over several functions: most registers and stack, all spills.
void read_ptxas_log(CompileResult& result);

/// The lines of a log from its first error on, `most` at the most; the whole log's start when no line has an error.
std::string first_error_lines(const std::string& log, int most);

}  // namespace quern::jit
