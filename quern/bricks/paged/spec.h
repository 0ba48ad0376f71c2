// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/abi.h"

namespace quern::paged {

/// How a call tells where a token goes in a paged cache. The values enter compile keys.
enum class Places : i32 {
  page_table,    ///< batch_indices, positions and a dense page table
  page_indices,  ///< batch_indices, positions, page_indptr and page_indices
  slot_mapping,
};

/// What a kernel reads of it.
struct PlaceParams {
  const void* batch_indices;    // [tokens], or slot_mapping
  const void* positions;        // [tokens] or null
  const i32* page_table;        // [batch, max_pages], or [page_indices], or null
  const i32* page_indptr;       // [batch + 1] or null
  i64 page_table_stride;        // elements
  i64 pages, batch, max_pages;  // CSR: max_pages is the length of page_indices
  i32 page_size;
  i32 unused;
};

}  // namespace quern::paged
