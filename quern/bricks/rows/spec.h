// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/abi.h"

namespace quern::rows {

/// How the columns of a row are dealt to the threads of a block: the part of a Config that each_chunk reads.
struct RowChunks {
  i32 vector;    // elements of one access; divides the number of columns
  i32 accesses;  // of a thread, all loaded before the first is stored
};

/// Columns of one chunk, which a block of `threads` takes at a time.
QN_HOST_DEVICE constexpr i64 chunk_columns(const RowChunks& c, i32 threads) { return i64(threads) * c.accesses * c.vector; }

}  // namespace quern::rows
