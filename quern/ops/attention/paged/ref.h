// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/attention/paged.h"
#include "quern/ops/attention/ref.h"

namespace quern::attention {

/// Most keys of a request that a call reads, as far as sizes say.
inline i64 paged_capacity(const PagedArgs& a) {
  const i64 page_size = a.k_cache.shape[1], columns = a.page_table.present() ? a.page_table.shape[1] : a.page_indices.shape[0];
  return a.max_seq_kv > 0 ? std::min(columns * page_size, a.max_seq_kv) : columns * page_size;
}

/// Request b of a paged call.
inline RefRequest paged_request(const PagedArgs& a, i64 b) {
  RefRequest r{b, 1, 0, 0};
  if (a.q_indptr.present()) r.q_begin = Ref<>(a.q_indptr).index(b), r.q_len = Ref<>(a.q_indptr).index(b + 1) - r.q_begin;
  if (a.page_table.present()) {
    r.length = std::max<i64>(0, Ref<>(a.seq_lens).index(b));
  } else {
    const Ref<> indptr(a.page_indptr);
    const i64 count = indptr.index(b + 1) - indptr.index(b);
    if (count > 0) r.length = (count - 1) * a.k_cache.shape[1] + std::clamp<i64>(Ref<>(a.last_page_len).index(b), 1, a.k_cache.shape[1]);
  }
  r.end = std::min(r.length, paged_capacity(a));
  return r;
}

/// The page of key j of request b.
inline i64 paged_page(const PagedArgs& a, i64 b, i64 j) {
  const i64 entry = j / a.k_cache.shape[1];
  return a.page_table.present() ? Ref<>(a.page_table).index(b, entry) : Ref<>(a.page_indices).index(Ref<>(a.page_indptr).index(b) + entry);
}

/// For Schema::token; rows serve calls without q_indptr.
inline bool keep_paged_token(PagedArgs& a, i64 t, std::vector<i32>& indices) {
  if (!a.q_indptr.present() || a.q_indptr.shape[0] < 2) return false;
  const i64 b = request_of_token(a.q_indptr, t), page_size = a.k_cache.shape[1];
  const i64 length = keep_query(a, t, b, paged_request(a, b), indices);
  if (length < 0) return false;
  if (a.page_table.present()) {
    indices.push_back(i32(length));
    a.page_table = a.page_table.slice(0, b, b + 1), a.seq_lens = view_of(indices, 2, 1, a.seq_lens);
  } else {
    const i64 first = Ref<>(a.page_indptr).index(b), pages = (length + page_size - 1) / page_size;
    indices.insert(indices.end(), {i32(first), i32(first + pages), i32(pages ? length - (pages - 1) * page_size : 1)});
    a.page_indptr = view_of(indices, 2, 2, a.page_indptr), a.last_page_len = view_of(indices, 4, 1, a.last_page_len);
  }
  a.q_indptr = view_of(indices, 0, 2, a.q_indptr);
  return true;
}

/// With the caller's own transform and mask of logits: what a variant's reference is made of.
/// `logit(x, at)` takes and returns a logit in natural units, `visible(at)` says whether a key is seen. They read hook tensors of the
/// Args, by Ref; `at` has none.
template <class Real = double, class Logit, class Visible>
void paged_ref_with(const PagedArgs& a, const PagedArgs& magnitudes, const Logit& logit, const Visible& visible) {
  const Ref<Real> k(a.k_cache), v(a.v_cache);
  const i64 page_size = k.dim(1), batch = a.page_table.present() ? a.seq_lens.shape[0] : a.last_page_len.shape[0];
  attend_ref<Real>(
      a, magnitudes, batch, k.dim(2), v.dim(3), [&](i64 b) { return paged_request(a, b); },
      [&](i64 b, i64 j, i64 head, Real* to) { k.row({paged_page(a, b, j), j % page_size, head}, to); },
      [&](i64 b, i64 j, i64 head, Real* to) { v.row({paged_page(a, b, j), j % page_size, head}, to); }, logit, visible);
}

template <class Real = double>
void paged_ref(const PagedArgs& a, const PagedArgs& magnitudes) {
  paged_ref_with<Real>(a, magnitudes, [](Real x, const HookContext&) { return x; }, [](const HookContext&) { return true; });
}

}  // namespace quern::attention
