// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/abi.h"

namespace quern::bench {

struct StreamConfig {
  i32 accesses;  // of 16 bytes, in flight together in one thread
  i32 threads;
};

struct StreamParams {
  const void* from;  // [vectors] of 16 bytes
  void* to;          // [vectors] for the copy, 16 bytes for the others
  i64 vectors;
};

}  // namespace quern::bench
