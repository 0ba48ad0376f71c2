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

/// Of kernels that copy tensors: the map of `in`, the map of `out`, where in each, and a count.
struct TensorParams {
  TensorMap from, to;
  const void* in;
  void* out;
  i32 at[5];     ///< of the box that is loaded
  i32 store[5];  ///< of the box that is stored
  i32 bytes;     ///< of a box
  i32 n;
};

}  // namespace quern::conform
