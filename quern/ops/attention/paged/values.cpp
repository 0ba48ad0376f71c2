// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/attention/paged/values.h"

#include <algorithm>
#include <string>
#include <vector>

#include "quern/ops/attention/case_values.h"
#include "quern/ops/attention/paged/ref.h"

namespace quern::attention {

namespace {

constexpr i32 kPoisonedPage = 2147480000;

/// Sizes of a case that does not say its own, so that large ones meet only small ones. queries -2: no q_indptr; -1: they differ.
constexpr struct {
  i64 batch, heads_kv, gqa, queries, capacity;
} kSizes[] = {
    {3, 2, 4, -2, 600},  {4, 2, 4, -1, 90},  {1, 1, 1, -2, 200},  {0, 2, 4, -2, 40},  {7, 1, 7, -2, 1500},
    {3, 5, 20, -2, 200}, {3, 2, 8, -2, 600}, {2, 1, 3, 65, 130},  {3, 1, 16, 1, 300}, {5, 1, 7, 2, 700},
    {2, 2, 1, 16, 300},  {2, 1, 12, 17, 64}, {1, 1, 2, 300, 320}, {3, 2, 8, 0, 40},   {9, 1, 8, -1, 60},
};

i64 random_length(i64 capacity, i64 page_size, Random& random) {
  const i64 edges[] = {capacity, 0, 1, page_size, page_size - 1, page_size + 1, capacity - 1, capacity / 2};
  const i64 choice = random.below(16);
  return std::clamp<i64>(choice < 8 ? edges[choice] : random.below(capacity + 1), 0, capacity);
}

/// What is measured must be what was asked for.
void check_length(i64 length, i64 capacity) {
  if (length >= 0 && length <= capacity) return;
  throw Error(ErrorKind::value, "attention.paged", "length", "is " + std::to_string(length), "0 to capacity=" + std::to_string(capacity));
}

std::vector<i64> lengths_of(const Case& which, i64 batch, i64 capacity, i64 page_size, Random& random) {
  std::vector<i64> lengths(static_cast<size_t>(batch));
  const i64 fixed = case_word(which, "length", -1);
  if (fixed >= 0) check_length(fixed, capacity);
  for (i64& length : lengths) length = fixed >= 0 ? fixed : random_length(capacity, page_size, random);
  if (fixed < 0 && batch > 0) lengths[0] = capacity;
  return lengths;
}

std::vector<i32> shuffled_pages(i64 pages, Random& random) {
  std::vector<i32> order(static_cast<size_t>(pages));
  for (i64 i = 0; i < pages; ++i) order[size_t(i)] = i32(i);
  for (i64 i = pages - 1; i > 0; --i) std::swap(order[size_t(i)], order[size_t(random.below(i + 1))]);
  return order;
}

/// q_indptr, and NaN in tokens of no request.
void fill_queries(PagedArgs& a, const Case& which, i64 batch, Random& random) {
  if (!a.q_indptr.present()) return;
  const i64 tokens = a.q.shape[0], fixed = case_word(which, "queries", -1);
  const i64 first = case_word(which, "spare", 1) && tokens > 0 ? 1 : 0;
  i64 q = first;
  for (i64 b = 0; b < batch; ++b) {
    set_entry(a.q_indptr, b, q);
    q += std::min(tokens - q, drawn_count(fixed < 0 ? -1 : fixed, std::min(tokens - q, kCaseQueries), random));
  }
  set_entry(a.q_indptr, batch, q);
  for (i64 t = 0; t < tokens; ++t)
    if (t < first || t >= q) poison_rows(a.q, {t});
}

/// Marks the keys that some query of request b, whose pages these are, sees.
void mark_seen(const PagedArgs& a, i64 b, const i32* pages, i64 page_size, std::vector<char>& seen) {
  const RefRequest r = paged_request(a, b);
  for (i64 i = 0; i < r.q_len; ++i) {
    const RefSpan span = ref_span(a, r, i);
    for (i64 j = span.first; j <= span.last; ++j) seen[size_t(pages[j / page_size] * page_size + j % page_size)] = 1;
  }
}

/// Whether some query of request b sees a key of its page `entry`. What its queries see together has no gap.
bool needs_page(const PagedArgs& a, i64 b, i64 entry, i64 page_size) {
  const RefRequest r = paged_request(a, b);
  if (r.q_len == 0) return false;
  const i64 first = ref_span(a, r, 0).first, last = ref_span(a, r, r.q_len - 1).last;
  return first <= last && first < (entry + 1) * page_size && last >= entry * page_size;
}

/// What the contract does not allow, and the kernels cut: a length beyond what the table has room for, or beyond max_seq_kv; a last page
/// that has more tokens than a page, or none. Keys of a request that is told to be longer are those that it has room for.
void break_length(PagedArgs& a, i64 b, i64 length, i64 capacity, i64 page_size, Random& random) {
  const i64 most = i64(1) << 29;
  if (a.page_table.present()) {
    if (length == capacity) set_entry(a.seq_lens, b, random.below(4) ? capacity + 1 + random.below(3 * page_size) : most + b);
  } else if (length > 0) {
    const i64 last = (length - 1) % page_size + 1;
    if (last == page_size) set_entry(a.last_page_len, b, random.below(3) ? page_size + 1 + random.below(2 * page_size) : most + b);
    if (last == 1) set_entry(a.last_page_len, b, -random.below(3));
  }
}

}  // namespace

void derive_paged(Case& which) {
  const i64 sizes = std::clamp<i64>(case_word(which, "sizes", 0), 0, i64(std::size(kSizes)) - 1);
  const auto fill = [&](const char* name, i64 value) {
    if (!which.contains(name)) which[name] = double(value);
  };
  fill("batch", kSizes[sizes].batch), fill("heads_kv", kSizes[sizes].heads_kv), fill("gqa", kSizes[sizes].gqa);
  fill("queries", kSizes[sizes].queries), fill("capacity", kSizes[sizes].capacity);
  const i64 batch = case_word(which, "batch", 1), page_size = std::max<i64>(1, case_word(which, "page_size", 16)),
            queries = case_word(which, "queries", -2);
  const i64 capacity = case_word(which, "capacity", 256), columns = ceil_div(std::max<i64>(capacity, 1), page_size);
  const bool csr = case_word(which, "csr", 0) != 0;
  if (which.contains("length")) check_length(i64(which["length"]), capacity);
  which["heads_q"] = double(case_word(which, "heads_kv", 1) * case_word(which, "gqa", 1));
  which["max_pages"] = double(columns);
  which["page_indices"] = double(batch * columns);
  which["pages"] = double(batch * columns + case_word(which, "spare_pages", 2));
  const i64 most_queries = queries == -2 ? 1 : queries >= 0 ? queries : kCaseQueries;
  which["q_indptr.present"] = queries != -2;
  which["tokens"] = double(batch * most_queries + (queries != -2 && case_word(which, "spare", 1) ? kSpareTokens : 0));
  for (const char* tensor : {"page_table.present", "seq_lens.present"}) which[tensor] = !csr;
  for (const char* tensor : {"page_indptr.present", "page_indices.present", "last_page_len.present"}) which[tensor] = csr;
  derive_options(which, "k_cache", "v_cache", batch * most_queries * columns * page_size);
}

void generate_paged(PagedArgs& a, const Case& which, Random& random) {
  const bool dense = a.page_table.present();
  const i64 batch = dense ? a.seq_lens.shape[0] : a.last_page_len.shape[0], pages = a.k_cache.shape[0], page_size = a.k_cache.shape[1];
  if (page_size == 0) return;
  const i64 columns = dense ? a.page_table.shape[1] : batch ? a.page_indices.shape[0] / batch : 0;
  const i64 room = std::min(columns, batch ? pages / batch : 0) * page_size,
            capacity = a.max_seq_kv > 0 ? std::min(room, a.max_seq_kv) : room;
  const std::vector<i64> lengths = lengths_of(which, batch, capacity, page_size, random);
  const std::vector<i32> order = shuffled_pages(pages, random);
  std::vector<char> seen(static_cast<size_t>(pages * page_size));
  fill_queries(a, which, batch, random);
  if (!dense) {
    for (i64 i = 0; i < a.page_indices.shape[0]; ++i) set_entry(a.page_indices, i, kPoisonedPage);
    set_entry(a.page_indptr, 0, 0);
  }
  const bool beyond = case_word(which, "beyond", 0) != 0 && !a.mask.present();  // the mask has as many bits as keys
  i64 taken = 0, bytes = 0;
  for (i64 b = 0; b < batch; ++b) {
    const i64 length = lengths[size_t(b)], used = ceil_div(length, page_size);
    if (dense) {
      set_entry(a.seq_lens, b, length);
    } else {
      set_entry(a.page_indptr, b + 1, taken + used);
      set_entry(a.last_page_len, b, used ? length - (used - 1) * page_size : kPoisonedPage);
    }
    for (i64 i = 0; i < (dense ? columns : used); ++i) {
      const i64 page = i < used && needs_page(a, b, i, page_size) ? order[size_t(taken + i)] : kPoisonedPage;
      const i64 at[] = {b, i};
      if (dense) store_integer(a.page_table.at(at), a.page_table.dtype, page);
      else set_entry(a.page_indices, taken + i, page);
    }
    if (a.mask_indptr.present()) {
      set_entry(a.mask_indptr, b, bytes);
      bytes += ceil_div<i64>(paged_request(a, b).q_len * length, 8);
    }
    if (beyond) break_length(a, b, length, capacity, page_size, random);
    mark_seen(a, b, order.data() + taken, page_size, seen);
    taken += used;
  }
  if (a.mask_indptr.present()) set_entry(a.mask_indptr, batch, bytes);
  fill_mask(a.mask, random);
  for (i64 page = 0; page < pages; ++page)
    for (i64 slot = 0; slot < page_size; ++slot)
      if (!seen[size_t(page * page_size + slot)]) poison_rows(a.k_cache, {page, slot}), poison_rows(a.v_cache, {page, slot});
  fill_scales(which, {&a.q_scale, &a.k_scale, &a.v_scale}, random);
}

}  // namespace quern::attention
