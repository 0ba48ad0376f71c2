// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/bricks/select/spec.h"

namespace quern::topk {

/// What becomes of the indices that a row keeps. The values enter compile keys: append, never renumber.
enum class Ending : i32 {
  by_index,    ///< they are written, ascending
  by_value,    ///< they are written, those of the largest first
  page_table,  ///< slots of their tokens are written, by ascending index
  ragged,      ///< they are written plus the row's offset, by ascending index
};

struct SelectConfig {
  RowLayout row;
  Ending ending;
  i32 threads;
  i32 min_blocks;  // resident_blocks()
};

/// Where tokens lie in a paged cache, for Ending::page_table.
struct PageTableParams {
  const i32* table;            // [batch, max_pages]
  const i32* row_to_batch;     // [rows] or null
  const i32* row_starts;       // [rows] or null: the table's column of a row's first token
  i32* indices;                // [rows, k] or null
  i64 stride, indices_stride;  // elements from row to row
  i64 batch, max_pages;
  i32 page_size;
  i32 unused;
};

struct SelectParams {
  const void* x;                          // [rows, length]
  i32* out;                               // [rows, k]
  void* values;                           // [rows, k] or null
  const i32* lengths;                     // [rows] or null
  const i32* row_starts;                  // [rows] or null
  const i32* offsets;                     // [rows], for Ending::ragged
  i64 stride, out_stride, values_stride;  // elements from row to row
  i64 rows, length, k;
  PageTableParams pages;
};

}  // namespace quern::topk
