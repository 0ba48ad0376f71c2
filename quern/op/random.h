// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/abi.h"

namespace quern {

/// Random numbers for `.generate`.
class Random {
 public:
  explicit Random(u64 seed) : state_(seed * 0x9E3779B97F4A7C15ull + 0x1234567) { next(); }
  u64 next() {  // splitmix64
    u64 z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  i64 below(i64 n) { return n <= 0 ? 0 : i64(next() % u64(n)); }
  /// Uniform in [-1, 1).
  double uniform() { return double(next() >> 11) * 0x1p-52 - 1.0; }

 private:
  u64 state_;
};

}  // namespace quern
