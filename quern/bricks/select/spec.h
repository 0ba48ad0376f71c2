// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/abi.h"

namespace quern {

/// How rows are read: part of a Config. A team of `blocks` blocks takes a row: each of them a part, one behind the other.
struct RowLayout {
  DType dtype;  // f32, f16 or bf16
  i32 vector;   // elements of one access
  i32 threads;  // of a block
  i32 blocks;   // of a team, which is a cluster; 1: a block alone
  i32 held;     // 1: a block keeps its part in shared memory, so that memory is read once
  i32 listed;   // elements among which a team looks for one place by sorting them
};

/// Bins of a histogram. Two words of 32 bits each, which hold sums of 2^20 numbers of 12 bits.
constexpr int kSelectBins = 2048;
/// Longest row.
constexpr i64 kLongestRow = i64(1) << 20;

/// Elements of a block's part of a row: whole accesses of a warp.
QN_HOST_DEVICE constexpr i64 part_length(const RowLayout& l, i64 length) {
  return round_up<i64>(ceil_div<i64>(length, l.blocks), 32 * l.vector);
}

/// Offsets into a block's shared memory.
struct SelectSmem {
  int bins;    // u32 [kSelectBins, 2]; or u64 [RowLayout::listed]
  int merged;  // u32 [kSelectBins / blocks, 2]: this block's share of the team's bins; or u32 [threads]
  int slots;   // 2 x U128 [32]: what other blocks read, in two sets
  int sums;    // U128 [32]: of warps
  int found;   // 64 bytes
  int held;    // the block's part of a row, where it is held
};
QN_HOST_DEVICE constexpr SelectSmem select_smem(const RowLayout& l) {
  const int merged = l.blocks > 1 ? kSelectBins / l.blocks * 8 : 0;
  SelectSmem s{};
  s.merged = max_of(kSelectBins, l.listed) * 8;
  s.slots = s.merged + max_of(merged, 4 * l.threads);
  s.sums = s.slots + 2 * 32 * 16;
  s.found = s.sums + 32 * 16;
  s.held = s.found + 64;
  return s;
}

}  // namespace quern
