// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/ref.h"
#include "quern/ops/kv_cache/append_paged.h"

namespace quern::kv_cache {

template <class Real = double>
void append_paged_ref(const AppendPagedArgs& a, const AppendPagedArgs&) {
  const Ref<Real> k(a.k), v(a.v);
  const Ref batch_indices(a.batch_indices), positions(a.positions);
  RefOut<Real> k_cache(a.k_cache), v_cache(a.v_cache);
  const i64 page_size = a.k_cache.shape[1];
  for (i64 t = 0; t < k.dim(0); ++t) {
    const i64 request = batch_indices.index(t), position = positions.index(t);
    const i64 batch = a.page_table.present() ? a.page_table.shape[0] : a.page_indptr.shape[0] - 1;
    if (request < 0 || request >= batch || position < 0) continue;
    const i64 slot = position / page_size;
    i64 page = -1;
    if (a.page_table.present()) {
      if (slot < a.page_table.shape[1]) page = Ref(a.page_table).index(request, slot);
    } else {
      const Ref indptr(a.page_indptr);
      const i64 at = indptr.index(request) + slot;
      if (at < indptr.index(request + 1)) page = Ref(a.page_indices).index(at);
    }
    if (page < 0 || page >= k_cache.dim(0)) continue;
    for (i64 h = 0; h < k.dim(1); ++h)
      for (i64 d = 0; d < k.dim(2); ++d) {
        k_cache.set(k(t, h, d), page, position % page_size, h, d);
        v_cache.set(v(t, h, d), page, position % page_size, h, d);
      }
  }
}

}  // namespace quern::kv_cache
