// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Where a token goes in a paged cache: by a slot, or by its request, its position and a page table. A place that is none is -1.
#pragma once
#include "quern/bricks/index.cuh"
#include "quern/bricks/paged/spec.h"
#include "quern/kit/kit.cuh"

namespace quern::paged {

/// Where a token goes; page -1: nowhere.
struct Place {
  i64 page, offset;
};

/// Entry `slot` of a request's row of the page table, or -1 where the table has none.
template <Places kPlaces> QN_DEVICE i64 page_of(const PlaceParams& p, i64 request, i64 slot) {
  i64 page;
  if constexpr (kPlaces == Places::page_indices) {
    const i64 at = i64(ptx::ld_global<i32>(p.page_indptr + request)) + slot;
    if (at < 0 || at >= p.max_pages || at >= ptx::ld_global<i32>(p.page_indptr + request + 1)) return -1;
    page = ptx::ld_global<i32>(p.page_table + at);
  } else {
    if (slot >= p.max_pages) return -1;
    page = ptx::ld_global<i32>(p.page_table + request * p.page_table_stride + slot);
  }
  return page >= 0 && page < p.pages ? page : -1;
}

/// kIndex: i32 or i64, of batch_indices and positions, or of slot_mapping.
template <Places kPlaces, DType kIndex> QN_DEVICE Place place_of(const PlaceParams& p, i64 token) {
  using Index = typename Integer<kIndex>::type;  // a division of i64 costs some forty instructions
  if constexpr (kPlaces == Places::slot_mapping) {
    const Index slot = Index(load_index<kIndex>(p.batch_indices, token));
    if (slot < 0 || i64(slot) >= p.pages * p.page_size) return {-1, 0};
    const Index page = slot / p.page_size;
    return {page, slot - page * p.page_size};
  } else {
    const i64 request = load_index<kIndex>(p.batch_indices, token);
    const Index position = Index(load_index<kIndex>(p.positions, token));
    if (request < 0 || request >= p.batch || position < 0) return {-1, 0};
    const Index slot = position / p.page_size;
    return {page_of<kPlaces>(p, request, slot), position - slot * p.page_size};
  }
}

}  // namespace quern::paged
