// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/abi.h"

namespace quern {

/// How a block reads a row: part of a Config.
struct RowLayout {
  DType dtype;   // f32, f16 or bf16
  i32 vector;    // elements of one access
  i32 threads;
};

/// Digits of a key in a radix selection, from the highest: 11, 11 and 10 bits.
constexpr int kSelectBins = 2048;
/// Longest row: a block's step of at least 512 elements, and as many steps as there are bins.
constexpr i64 kLongestRow = i64(1) << 20;

/// Rows of up to 4096 elements need no large block, which only waits longer at its barriers.
QN_HOST_DEVICE constexpr i32 row_threads(i64 length) { return length <= 4096 ? 128 : 1024; }

/// Offsets into a block's shared memory.
struct SelectSmem {
  int bins, parts, found, bytes;
};
QN_HOST_DEVICE constexpr SelectSmem select_smem() {
  const int bins = kSelectBins * 16, parts = 32 * 16;
  return {0, bins, bins + parts, bins + parts + 64};
}

}  // namespace quern
