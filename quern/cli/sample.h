// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <vector>

#include "quern/kit/abi.h"

namespace quern::cli {

/// Indices of `wanted` of `count` things, one of each of `wanted` equal parts; all where wanted is 0, or more than there are.
/// `rotate` chooses which of a part: ceil(count / wanted) successive numbers choose everything. It also turns the order, so that a
/// run that ends early leaves out others each time.
inline std::vector<size_t> sample_of(size_t count, size_t wanted, u64 rotate = 0) {
  const size_t parts = wanted == 0 || wanted > count ? count : wanted;
  std::vector<size_t> some;
  for (size_t i = 0; i < parts; ++i) {
    const size_t part = (i + rotate) % parts, begin = part * count / parts, end = (part + 1) * count / parts;
    some.push_back(begin + rotate % (end - begin));
  }
  return some;
}

}  // namespace quern::cli
