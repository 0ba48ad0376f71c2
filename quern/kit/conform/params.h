// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/abi.h"

namespace quern::conform {

/// Parameters of every conformance kernel: raw bytes in and out, and a count.
struct Params {
  const void* in;
  void* out;
  i32 n;
};

}  // namespace quern::conform
