// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/attention/paged/contract.h"

#include "quern/ops/attention/paged/ref.h"

namespace quern::attention {

namespace {

using A = PagedArgs;

/// What is wrong with the request's length.
Breach length_breach(const A& a, const Problem& p, i64 b) {
  const RefRequest r = paged_request(a, b);
  if (r.q_len == 0) return {};  // its length is not read
  if (a.page_table.present()) {
    const i64 most = min_of(paged_capacity(a), kMostKeys), length = Ref<>(a.seq_lens).index(b);
    if (length < 0 || length > most)
      return {
          "seq_lens", {b}, length, range_text(0, most) + (a.max_seq_kv > 0 ? " (max_seq_kv is " + std::to_string(a.max_seq_kv) + ")" : "")};
    return {};
  }
  const Ref<> indptr(a.page_indptr);
  if (indptr.index(b) == indptr.index(b + 1)) return {};
  const i64 last = Ref<>(a.last_page_len).index(b), page_size = p[Axis::page_size];
  if (last < 1 || last > page_size) return {"last_page_len", {b}, last, range_text(1, page_size) + " (in [1, page_size])"};
  const i64 most = a.max_seq_kv > 0 ? min_of(a.max_seq_kv, kMostKeys) : kMostKeys;
  if (r.length <= most) return {};
  return {"page_indptr",
          {b + 1},
          indptr.index(b + 1),
          "fewer pages: request " + std::to_string(b) + " has " + std::to_string(r.length) + " tokens, and max_seq_kv allows " +
              std::to_string(most)};
}

/// The first entry of the table that the request needs and that names no page.
Breach page_breach(const A& a, const Problem& p, i64 b) {
  const RefRequest r = paged_request(a, b);
  const i64 page_size = p[Axis::page_size];
  if (r.q_len == 0) return {};
  const i64 first = ref_span(a, r, 0).first, last = ref_span(a, r, r.q_len - 1).last;
  for (i64 entry = first / page_size; entry * page_size <= last; ++entry) {
    const i64 page = paged_page(a, b, entry * page_size);
    if (page >= 0 && page < p[Axis::pages]) continue;
    const bool dense = a.page_table.present();
    const std::vector<i64> at = dense ? std::vector<i64>{b, entry} : std::vector<i64>{Ref<>(a.page_indptr).index(b) + entry};
    return {dense ? "page_table" : "page_indices", at, page,
            range_text(0, p[Axis::pages] - 1) + " (in [0, pages)): request " + std::to_string(b) + " has " + std::to_string(r.length) +
                " tokens"};
  }
  return {};
}

}  // namespace

Breach paged_contract(const A& a, const Problem& p) {
  for (i64 b = 0; p[Axis::page_size] > 0 && b < p[Axis::batch]; ++b) {
    if (Breach breach = length_breach(a, p, b)) return breach;
    if (Breach breach = page_breach(a, p, b)) return breach;
    if (Breach breach = mask_breach(a, b, paged_request(a, b))) return breach;
  }
  return {};
}

}  // namespace quern::attention
