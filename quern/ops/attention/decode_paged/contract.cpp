// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/attention/decode_paged/contract.h"

#include "quern/op/ref.h"

namespace quern::attention {

namespace {

using A = DecodePagedArgs;

/// Where a request's pages stand in its table, and its tokens.
struct Request {
  i64 first_entry = 0, tokens = 0;
};

/// The request, or what is wrong with its length.
Breach find_request(const A& a, const Problem& p, i64 b, Request& found) {
  if (a.page_table.present()) {
    found.tokens = Ref<>(a.seq_lens).index(b);
    return {};
  }
  const Ref<> indptr(a.page_indptr);
  const i64 begin = indptr.index(b), end = indptr.index(b + 1), page_size = p[Axis::page_size];
  found = {begin, 0};
  if (begin == end) return {};
  const i64 last = Ref<>(a.last_page_len).index(b);
  if (last < 1 || last > page_size) return {"last_page_len", {b}, last, range_text(1, page_size) + " (in [1, page_size])"};
  found.tokens = (end - begin - 1) * page_size + last;
  const i64 most = a.max_seq_kv > 0 ? min_of(a.max_seq_kv, kMostTokens) : kMostTokens;
  if (found.tokens <= most) return {};
  return {"page_indptr", {b + 1}, end, "fewer pages: request " + std::to_string(b) + " has " + std::to_string(found.tokens) + " tokens, and max_seq_kv allows " + std::to_string(most)};
}

}  // namespace

Breach decode_paged_contract(const A& a, const Problem& p) {
  const bool dense = a.page_table.present();
  const Ref<> pages(dense ? a.page_table : a.page_indices);
  const i64 page_size = p[Axis::page_size];
  for (i64 b = 0; page_size > 0 && b < p[Axis::batch]; ++b) {
    Request r;
    if (Breach breach = find_request(a, p, b, r)) return breach;
    const i64 first = a.window_left < 0 ? 0 : max_of<i64>(0, r.tokens - 1 - a.window_left);
    for (i64 entry = first / page_size; entry * page_size < r.tokens; ++entry) {
      const i64 page = dense ? pages.index(b, entry) : pages.index(r.first_entry + entry);
      if (page >= 0 && page < p[Axis::pages]) continue;
      const std::vector<i64> at = dense ? std::vector<i64>{b, entry} : std::vector<i64>{r.first_entry + entry};
      return {dense ? "page_table" : "page_indices", at, page, range_text(0, p[Axis::pages] - 1) + " (in [0, pages)): request " + std::to_string(b) + " has " + std::to_string(r.tokens) + " tokens"};
    }
  }
  return {};
}

}  // namespace quern::attention
