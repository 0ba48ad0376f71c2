// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What tells libquern that a library with ops of its own was built against other headers than it.
#pragma once
#include <cstddef>
#include <initializer_list>

#include "quern/base/version.h"
#include "quern/kit/abi.h"

namespace quern {

/// Headers as a library was built with them. It crosses the border before anything else: its own layout never changes.
struct Headers {
  const char* version;
  u64 layout;  ///< kHeaders.layout there
  bool agree_with(const Headers& other) const {
    const char *a = version, *b = other.version;
    while (*a && *a == *b) ++a, ++b;
    return *a == *b && layout == other.layout;
  }
};

/// FNV-1a of numbers.
constexpr u64 layout_word(std::initializer_list<u64> numbers) {
  u64 word = 0xcbf29ce484222325ull;
  for (u64 number : numbers)
    for (int byte = 0; byte < 8; ++byte, number >>= 8) word = (word ^ (number & 255)) * 0x100000001b3ull;
  return word;
}

}  // namespace quern
