// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cstdlib>
#include <string_view>

namespace quern {

/// True in `./test.sh --full`: the whole sweep instead of a sample.
inline bool full_sweep() {
  const char* value = std::getenv("QN_TEST_FULL");
  return value && std::string_view(value) == "1";
}

}  // namespace quern
