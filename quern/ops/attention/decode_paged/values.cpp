// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/attention/decode_paged/values.h"

#include <algorithm>
#include <vector>

namespace quern::attention {

namespace {

constexpr i32 kPoisonedPage = 2147480000;
constexpr u16 kPoisonedElement = 0x7FFF;  // NaN in f16 and bf16

double word(const Case& which, const char* name, double otherwise) {
  const auto at = which.find(name);
  return at == which.end() ? otherwise : double(at->second);
}

template <class T> T& element(const TensorView& view, std::initializer_list<i64> index) { return *static_cast<T*>(view.at(index.begin())); }

i64 random_length(i64 capacity, i64 page_size, Random& random) {
  const i64 edges[] = {capacity, 0, 1, page_size, page_size - 1, page_size + 1, capacity - 1, capacity / 2};
  const i64 choice = random.below(16);
  return std::clamp<i64>(choice < 8 ? edges[choice] : random.below(capacity + 1), 0, capacity);
}

/// What is measured must be what was asked for.
void check_length(i64 length, i64 capacity) {
  if (length >= 0 && length <= capacity) return;
  throw Error(ErrorKind::value, "attention.decode_paged", "length", "is " + std::to_string(length), "0 to capacity=" + std::to_string(capacity));
}

std::vector<i64> lengths_of(const Case& which, i64 batch, i64 capacity, i64 page_size, Random& random) {
  std::vector<i64> lengths(static_cast<size_t>(batch));
  const i64 fixed = i64(word(which, "length", -1));
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

void fill_element_rows(const TensorView& cache, i64 page, i64 slot) {
  for (i64 h = 0; h < cache.shape[2]; ++h)
    for (i64 d = 0; d < cache.shape[3]; ++d) element<u16>(cache, {page, slot, h, d}) = kPoisonedElement;
}

}  // namespace

void derive_decode_paged(Case& which) {
  const i64 batch = i64(word(which, "batch", 1)), page_size = std::max<i64>(1, i64(word(which, "page_size", 16)));
  const i64 capacity = i64(word(which, "capacity", 256)), columns = ceil_div(std::max<i64>(capacity, 1), page_size);
  const bool csr = word(which, "csr", 0) != 0;
  if (which.count("length")) check_length(i64(which["length"]), capacity);
  which["heads_q"] = word(which, "heads_kv", 1) * word(which, "gqa", 1);
  which["max_pages"] = double(columns);
  which["page_indices"] = double(batch * columns);
  which["pages"] = double(batch * columns + i64(word(which, "spare_pages", 2)));
  for (const char* tensor : {"page_table.present", "seq_lens.present"}) which[tensor] = !csr;
  for (const char* tensor : {"page_indptr.present", "page_indices.present", "last_page_len.present"}) which[tensor] = csr;
}

void generate_decode_paged(DecodePagedArgs& a, const Case& which, Random& random) {
  const i64 batch = a.q.shape[0], pages = a.k_cache.shape[0], page_size = a.k_cache.shape[1];
  const bool dense = a.page_table.present();
  if (page_size == 0) return;
  const i64 columns = dense ? a.page_table.shape[1] : batch ? a.page_indices.shape[0] / batch : 0;
  const i64 room = std::min(columns, batch ? pages / batch : 0) * page_size, capacity = a.max_seq_kv > 0 ? std::min(room, a.max_seq_kv) : room;
  const std::vector<i64> lengths = lengths_of(which, batch, capacity, page_size, random);
  const std::vector<i32> order = shuffled_pages(pages, random);
  std::vector<char> seen(static_cast<size_t>(pages * page_size));
  if (!dense) {
    for (i64 i = 0; i < a.page_indices.shape[0]; ++i) element<i32>(a.page_indices, {i}) = kPoisonedPage;
    element<i32>(a.page_indptr, {0}) = 0;
  }
  i64 taken = 0;
  for (i64 b = 0; b < batch; ++b) {
    const i64 length = lengths[size_t(b)], used = ceil_div(length, page_size);
    if (dense) {
      element<i32>(a.seq_lens, {b}) = i32(length);
      for (i64 i = 0; i < columns; ++i) element<i32>(a.page_table, {b, i}) = i < used ? order[size_t(taken + i)] : kPoisonedPage;
    } else {
      element<i32>(a.page_indptr, {b + 1}) = i32(taken + used);
      element<i32>(a.last_page_len, {b}) = used ? i32(length - (used - 1) * page_size) : kPoisonedPage;
      for (i64 i = 0; i < used; ++i) element<i32>(a.page_indices, {taken + i}) = order[size_t(taken + i)];
    }
    const i64 first = a.window_left < 0 ? 0 : std::max<i64>(0, length - 1 - a.window_left);
    for (i64 j = first; j < length; ++j) seen[size_t(order[size_t(taken + j / page_size)] * page_size + j % page_size)] = 1;
    taken += used;
  }
  for (i64 page = 0; page < pages; ++page) {
    for (i64 slot = 0; slot < page_size; ++slot) {
      if (seen[size_t(page * page_size + slot)]) continue;
      fill_element_rows(a.k_cache, page, slot);
      fill_element_rows(a.v_cache, page, slot);
    }
  }
}

}  // namespace quern::attention
