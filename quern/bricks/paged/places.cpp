// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bricks/paged/places.h"

#include <numeric>
#include <string>
#include <vector>

#include "quern/base/host_dtype.h"
#include "quern/op/ref.h"

namespace quern::paged {

Rejection one_page_table(const PlaceFacts& f) {
  if (f.slot_mapping) {
    if (f.page_table) return {"page_table", "given", "none beside slot_mapping"};
    if (f.page_indptr) return {"page_indptr", "given", "none beside slot_mapping"};
    if (f.page_indices) return {"page_indices", "given", "none beside slot_mapping"};
    return {};
  }
  if (!f.page_table && !f.page_indptr && !f.page_indices) return {"page_table", "absent", "page_table, or page_indptr with page_indices"};
  if (f.page_table && (f.page_indptr || f.page_indices)) return {f.page_indptr ? "page_indptr" : "page_indices", "given", "none beside page_table"};
  if (!f.page_table && !f.page_indptr) return {"page_indptr", "absent", "a tensor, as page_indices is given"};
  if (!f.page_table && !f.page_indices) return {"page_indices", "absent", "a tensor, as page_indptr is given"};
  return {};
}

PlaceParams place_params(const PlaceTensors& t) {
  const bool csr = t.page_indptr.present(), slots = t.slot_mapping.present();
  PlaceParams p{};
  p.batch_indices = slots ? t.slot_mapping.data : t.batch_indices.data;
  p.positions = t.positions.data;
  p.page_table = static_cast<const i32*>(csr ? t.page_indices.data : t.page_table.data);
  p.page_indptr = static_cast<const i32*>(t.page_indptr.data);
  p.page_table_stride = csr || slots ? 0 : t.page_table.strides[0];
  p.pages = t.cache.shape[0], p.page_size = i32(t.cache.shape[1]);
  if (!slots) p.batch = csr ? t.page_indptr.shape[0] - 1 : t.page_table.shape[0], p.max_pages = csr ? t.page_indices.shape[0] : t.page_table.shape[1];
  return p;
}

Breach places_contract(const PlaceTensors& t, i64 tokens) {
  if (t.slot_mapping.present()) return {};
  const bool csr = t.page_indptr.present();
  const Ref<> batch_indices(t.batch_indices), positions(t.positions), indptr(t.page_indptr), table(csr ? t.page_indices : t.page_table);
  const i64 pages = t.cache.shape[0], page_size = t.cache.shape[1];
  for (i64 token = 0; token < tokens; ++token) {
    const i64 request = batch_indices.index(token), position = positions.index(token);
    if (request < 0) continue;
    const i64 begin = csr ? indptr.index(request) : 0, room = csr ? indptr.index(request + 1) - begin : t.page_table.shape[1];
    if (position < 0 || position >= room * page_size)
      return {"positions", {token}, position, range_text(0, room * page_size - 1) + ": request " + std::to_string(request) + " has " + std::to_string(room) + " pages of " + std::to_string(page_size) + " tokens"};
    const i64 slot = position / page_size, page = csr ? table.index(begin + slot) : table.index(request, slot);
    if (page >= 0 && page < pages) continue;
    const std::vector<i64> at = csr ? std::vector<i64>{begin + slot} : std::vector<i64>{request, slot};
    return {csr ? "page_indices" : "page_table", at, page, range_text(0, pages - 1) + ", as token " + std::to_string(token) + " is written there"};
  }
  return {};
}

/// Slots in steps of a number without a divisor in common with their count, so that none comes twice; one of eight is negative, often -1.
static void generate_slots(const PlaceTensors& p, i64 tokens, Random& random) {
  const i64 slots = p.cache.shape[0] * p.cache.shape[1];
  if (slots == 0) return;
  i64 step = 1 + random.below(slots), slot = random.below(slots);
  while (std::gcd(step, slots) != 1) ++step;
  for (i64 t = 0; t < tokens; ++t, slot = (slot + step) % slots) {
    const i64 at[] = {t};
    store_integer(p.slot_mapping.at(at), p.slot_mapping.dtype, random.below(8) == 0 ? -1 - random.below(random.below(2) ? 2 : 1000) : slot);
  }
}

/// The tokens are dealt out over the requests at random, each taking its request's next position.
static void generate_positions(const PlaceTensors& p, i64 tokens, Random& random) {
  const bool csr = p.page_indptr.present();
  const i64 batch = csr ? p.page_indptr.shape[0] - 1 : p.page_table.shape[0];
  const i64 page_size = p.cache.shape[1];
  const i64 max_pages = csr ? (batch ? p.page_indices.shape[0] / batch : 0) : p.page_table.shape[1];
  if (csr) {
    for (i64 b = 0; b <= batch; ++b) static_cast<i32*>(p.page_indptr.data)[b * p.page_indptr.strides[0]] = i32(b * max_pages);
  }
  std::vector<i64> next(static_cast<size_t>(batch));
  for (i64& position : next) position = random.below(page_size + 2);
  for (i64 t = 0; t < tokens; ++t) {
    const i64 request = batch ? random.below(batch) : -1, at[] = {t};
    const bool fits = request >= 0 && next[size_t(request)] < max_pages * page_size;
    store_integer(p.batch_indices.at(at), p.batch_indices.dtype, fits ? request : -1);
    store_integer(p.positions.at(at), p.positions.dtype, fits ? next[size_t(request)]++ : 0);
  }
}

void generate_places(const PlaceTensors& t, i64 tokens, Random& random) {
  if (t.slot_mapping.present()) generate_slots(t, tokens, random);
  else generate_positions(t, tokens, random);
}

}  // namespace quern::paged
