// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/rounding_ref.h"
#include "quern/ops/kv_cache/append_paged.h"

namespace quern::kv_cache {

/// Where a call puts a token; page -1: nowhere.
struct PlaceRef {
  i64 page = -1, offset = 0;
};

inline PlaceRef place_ref(const AppendPagedArgs& a, i64 token) {
  const i64 page_size = a.k_cache.shape[1];
  if (a.slot_mapping.present()) {
    const i64 slot = Ref(a.slot_mapping).index(token);
    return slot < 0 ? PlaceRef{} : PlaceRef{slot / page_size, slot % page_size};
  }
  const i64 request = Ref(a.batch_indices).index(token), position = Ref(a.positions).index(token);
  const i64 batch = a.page_table.present() ? a.page_table.shape[0] : a.page_indptr.shape[0] - 1;
  if (request < 0 || request >= batch || position < 0) return {};
  const i64 slot = position / page_size;
  if (a.page_table.present())
    return slot < a.page_table.shape[1] ? PlaceRef{Ref(a.page_table).index(request, slot), position % page_size} : PlaceRef{};
  const Ref indptr(a.page_indptr);
  const i64 at = indptr.index(request) + slot;
  return at >= 0 && at < a.page_indices.shape[0] && at < indptr.index(request + 1)
             ? PlaceRef{Ref(a.page_indices).index(at), position % page_size}
             : PlaceRef{};
}

template <class Real = double>
void append_paged_ref(const AppendPagedArgs& a, const AppendPagedArgs&, const AppendPagedArgs& given) {
  const Ref<Real> k(a.k), v(a.v), k_scale(a.k_scale), v_scale(a.v_scale);
  const RefOut<Real> k_cache(a.k_cache), v_cache(a.v_cache);
  const bool copied = given.k.dtype == given.k_cache.dtype;
  const auto stored = [&](Real x, const Ref<Real>& scale, i64 head) {
    if (copied) return x;
    if (scale.present()) x = rounded(x / scale(scale.dim(0) == 1 ? 0 : head));
    return rounded_to(x, given.k_cache.dtype);
  };
  for (i64 t = 0; t < k.dim(0); ++t) {
    const PlaceRef to = place_ref(a, t);
    if (to.page < 0 || to.page >= k_cache.dim(0)) continue;
    for (i64 h = 0; h < k.dim(1); ++h)
      for (i64 d = 0; d < k.dim(2); ++d) {
        k_cache.set(stored(k(t, h, d), k_scale, h), to.page, to.offset, h, d);
        v_cache.set(stored(v(t, h, d), v_scale, h), to.page, to.offset, h, d);
      }
  }
}

}  // namespace quern::kv_cache
