// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>
#include <vector>

namespace quern {

struct ProcessResult {
  int status = -1;     ///< exit status; -1 when it could not be started or was killed by a signal
  std::string output;  ///< stdout and stderr together
};
/// Runs a program (found on PATH) without a shell and waits for it.
ProcessResult run_process(const std::vector<std::string>& command);
/// Absolute path of a program on PATH, or empty.
std::string find_program(const std::string& name);

}  // namespace quern
