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
  if (f.page_table && (f.page_indptr || f.page_indices))
    return {f.page_indptr ? "page_indptr" : "page_indices", "given", "none beside page_table"};
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
  if (!slots)
    p.batch = csr ? t.page_indptr.shape[0] - 1 : t.page_table.shape[0], p.max_pages = csr ? t.page_indices.shape[0] : t.page_table.shape[1];
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
      return {"positions",
              {token},
              position,
              range_text(0, room * page_size - 1) + ": request " + std::to_string(request) + " has " + std::to_string(room) + " pages of " +
                  std::to_string(page_size) + " tokens"};
    const i64 slot = position / page_size, page = csr ? table.index(begin + slot) : table.index(request, slot);
    if (page >= 0 && page < pages) continue;
    const std::vector<i64> at = csr ? std::vector<i64>{begin + slot} : std::vector<i64>{request, slot};
    return {csr ? "page_indices" : "page_table", at, page,
            range_text(0, pages - 1) + ", as token " + std::to_string(token) + " is written there"};
  }
  return {};
}

static i64 largest_of(DType dtype) { return dtype == DType::i64 ? INT64_MAX : INT32_MAX; }

/// Slots in steps of a number without a divisor in common with their count, so that none comes twice; one of eight is negative, often -1.
static void generate_slots(const PlaceTensors& p, i64 tokens, bool beyond, Random& random) {
  const i64 slots = p.cache.shape[0] * p.cache.shape[1];
  if (slots == 0) return;
  i64 step = 1 + random.below(slots), slot = random.below(slots);
  while (std::gcd(step, slots) != 1) ++step;
  for (i64 t = 0; t < tokens; ++t, slot = (slot + step) % slots) {
    const i64 at[] = {t};
    store_integer(p.slot_mapping.at(at), p.slot_mapping.dtype, random.below(8) == 0 ? -1 - random.below(random.below(2) ? 2 : 1000) : slot);
    if (beyond && t % 3 == 0)
      store_integer(p.slot_mapping.at(at), p.slot_mapping.dtype,
                    t % 2 ? largest_of(p.slot_mapping.dtype) - t : slots + random.below(p.cache.shape[1] + 1));
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

/// Of every second token a request that is none, or a position that is negative or beyond its request's pages; of some others, of request
/// 0, a page that is none. Bounds of the first and the last request go beyond page_indices.
static void break_positions(const PlaceTensors& p, i64 tokens, Random& random) {
  const bool csr = p.page_indptr.present();
  const TensorView& table = csr ? p.page_indices : p.page_table;
  const i64 batch = csr ? p.page_indptr.shape[0] - 1 : p.page_table.shape[0], page_size = p.cache.shape[1], pages = p.cache.shape[0];
  if (batch == 0 || page_size == 0) return;
  const i64 columns = csr ? p.page_indices.shape[0] / batch : p.page_table.shape[1], largest = largest_of(p.batch_indices.dtype);
  const auto set = [](const TensorView& view, i64 t, i64 value) { store_integer(view.at(&t), view.dtype, value); };
  const i64 first = csr ? -1 - random.below(2) : 0;  // entry of request 0's page 0
  if (csr) set(p.page_indptr, 0, first), set(p.page_indptr, batch, batch * columns + 1 + random.below(3));
  for (i64 t = 0; t < tokens; t += 2) {
    const i64 request = random.below(batch), end = (columns - (request == 0 ? first : 0)) * page_size;
    const i64 requests[] = {batch, batch + random.below(3), largest - t}, positions[] = {-1, -1 - random.below(page_size + 1), largest - t};
    const i64 way = t / 2 % 4;
    if (way == 3) set(p.batch_indices, t, requests[t / 8 % 3]);
    else set(p.batch_indices, t, request), set(p.positions, t, way == 2 ? positions[t / 8 % 3] : end + way * random.below(page_size));
  }
  const i64 nowhere[] = {pages, -1, INT32_MAX, pages + random.below(5), INT32_MIN};
  for (i64 t = 1, broken = 0; t < tokens; t += 2) {  // pages that tokens of request 0 would go to
    const i64 request = load_integer(p.batch_indices.at(&t), p.batch_indices.dtype),
              entry = first + load_integer(p.positions.at(&t), p.positions.dtype) / page_size;
    const i64 at[] = {csr ? entry : 0, entry};
    if (request == 0 && entry >= 0 && t % 6 < 4) store_integer(table.at(at), table.dtype, nowhere[broken++ % 5]);
  }
}

void generate_places(const PlaceTensors& t, i64 tokens, const Case& which, Random& random) {
  const auto word = which.find("beyond");
  const bool beyond = word != which.end() && word->second != 0;
  if (t.slot_mapping.present()) return generate_slots(t, tokens, beyond, random);
  generate_positions(t, tokens, random);
  if (beyond) break_positions(t, tokens, random);
}

}  // namespace quern::paged
