// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>
#include <vector>

#include "quern/base/subprocess.h"

namespace quern {

/// The built program with these words, and with variables like "QN_CACHE_DIR=/x".
inline ProcessResult command(const std::vector<std::string>& words, const std::vector<std::string>& variables = {}) {
  std::vector<std::string> all = {"/usr/bin/env"};
  all.insert(all.end(), variables.begin(), variables.end());
  all.push_back(QN_CLI);
  all.insert(all.end(), words.begin(), words.end());
  return run_process(all);
}

}  // namespace quern
