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

/// Which of the samples a test takes that takes a sample: ROTATION in tools/run_tests.py.
inline unsigned long long test_rotation() {
  const char* value = std::getenv("QN_TEST_ROTATION");
  return value ? std::strtoull(value, nullptr, 10) : 0;
}

}  // namespace quern
