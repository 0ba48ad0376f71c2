// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// How many blocks take a row, and what they keep of it.
#pragma once
#include "quern/bricks/select/spec.h"
#include "quern/op/schema.h"

namespace quern {

/// Rows of up to so many elements are short: a small block takes one. A large block would only wait longer at its barriers.
constexpr i64 kShortRow = 4096;
constexpr i32 kShortRowThreads = 128;
/// What a kernel says of its blocks for long rows.
struct LongRows {
  i32 threads = 640;         ///< 96 registers each, which kernels with filters take up to; at most kMostRowThreads, with 64
  i32 listed = kSelectBins;  ///< RowLayout::listed
};
constexpr i32 kMostRowThreads = 1024;

/// A block alone, which reads memory anew in each pass. vector: elements of an access that the rows allow.
inline RowLayout block_layout(DType dtype, i32 vector, i64 length, LongRows block = {}) {
  // Two widths only: full accesses, or single elements of rows that are not aligned
  if (length <= kShortRow) block = {.threads = kShortRowThreads};
  return {dtype, vector * size_of(dtype) == 16 ? vector : 1, block.threads, 1, 0, block.listed};
}
/// Bytes of shared memory of a block.
inline i32 select_bytes(const RowLayout& l, i64 length) {
  return i32(select_smem(l).held + (l.held ? part_length(l, length) * size_of(l.dtype) : 0));
}

/// What suits the device. Few long rows are shared by the blocks of clusters, so that a row uses several multiprocessors, and held in their
/// shared memory, where their parts fit. With more rows, clusters of eight run in many turns; of up to half as many rows as multiprocessors
/// two blocks take one, of more a block, which read it again from the L2.
inline RowLayout row_layout(DType dtype, i32 vector, i64 rows, i64 length, const DeviceInfo& device, LongRows block = {}) {
  const RowLayout alone = block_layout(dtype, vector, length, block);
  if (device.arch.number < 90 || length <= kShortRow) return alone;
  RowLayout team = alone;
  if (rows * 4 <= device.sms) {
    team.blocks = length <= 16384 ? 2 : 8, team.held = 1;
    // Of up to 8 rows each block has a multiprocessor of its own
    if (rows > 8) team.threads /= 2;
    if (select_bytes(team, length) > device.smem_block) team.held = 0;
  } else if (rows * 2 <= device.sms) {
    team.blocks = 2;
  }
  return team;
}
/// Blocks that the compiler leaves registers for on a multiprocessor. Two where row_layout() has halved the threads: one computes beside
/// one that reads.
inline i32 resident_blocks(const RowLayout& l) { return l.threads > kShortRowThreads && l.threads <= kMostRowThreads / 2 ? 2 : 1; }
/// A team a row. Blocks alone walk over rows where there are more than 8 a multiprocessor; clusters are planned for so few rows that each
/// takes one.
inline Grid row_grid(const RowLayout& l, i64 rows, i64 length, const DeviceInfo& device, i32 pdl) {
  const i64 teams = max_of<i64>(1, min_of<i64>(rows, max_of<i64>(1, i64(device.sms) * 8 / l.blocks)));
  return {.x = teams * l.blocks, .smem = select_bytes(l, length), .cluster = u32(l.blocks), .pdl = pdl};
}

}  // namespace quern
