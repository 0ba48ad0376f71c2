// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/attention/ragged/values.h"

#include <algorithm>
#include <vector>

#include "quern/ops/attention/ragged/ref.h"

namespace quern::attention {

namespace {

/// Tokens and keys before the first request and behind the last, which no call may touch.
constexpr i64 kSpare = 3;
/// Most of a request where the word does not say how many.
constexpr i64 kQueries = 40, kKeys = 90;

i64 word(const Case& which, const char* name, i64 otherwise) {
  const auto at = which.find(name);
  return at == which.end() ? otherwise : i64(at->second);
}

void set_entry(const TensorView& view, i64 at, i64 value) {
  const i64 index[] = {at};
  store_integer(view.at(index), view.dtype, value);
}

/// Every element of row `at` of a tensor of three dims becomes NaN.
void poison_row(const TensorView& view, i64 at) {
  for (i64 h = 0; h < view.shape[1]; ++h)
    for (i64 d = 0; d < view.shape[2]; ++d) {
      const i64 index[] = {at, h, d};
      store_element(view, index, std::numeric_limits<double>::quiet_NaN());
    }
}

i64 count_of(i64 fixed, i64 most, Random& random) {
  if (fixed >= 0) return fixed;
  const i64 edges[] = {0, 1, most, most - 1, 16, 17};
  return std::clamp<i64>(random.below(2) ? edges[random.below(6)] : random.below(most + 1), 0, most);
}

}  // namespace

void derive_ragged(Case& which) {
  const i64 batch = word(which, "batch", 1), queries = word(which, "queries", -1), keys = word(which, "keys", -1);
  which["heads_q"] = double(word(which, "heads_kv", 1) * word(which, "gqa", 1));
  const i64 most_queries = queries >= 0 ? queries : kQueries, most_keys = keys >= 0 ? keys : kKeys;
  if (!which.contains("tokens")) which["tokens"] = double(batch * most_queries + (word(which, "spare", 1) ? kSpare : 0));
  if (!which.contains("tokens_kv")) which["tokens_kv"] = double(batch * most_keys + (word(which, "spare", 1) ? kSpare : 0));
  if (word(which, "head_dim_v", 0) == 0) which["head_dim_v"] = which["head_dim"];
  const bool bits = word(which, "bits", 0) != 0;
  which["mask.present"] = which["mask_indptr.present"] = bits;
  which["mask_bytes"] = double(bits ? batch * ceil_div<i64>(most_queries * most_keys, 8) + 2 : 0);
  const i64 fp8 = word(which, "fp8", 0);
  const DType dtype = DType(word(which, "q.dtype", i64(DType::bf16)));
  const DType stored = fp8 == 0 ? dtype : fp8 % 2 == 1 ? DType::e4m3 : DType::e5m2;
  which["k.dtype"] = which["v.dtype"] = i64(stored);
  which["q.dtype"] = i64(fp8 > 2 ? stored : dtype), which["out.dtype"] = i64(dtype);
  const i64 scales = word(which, "scales", 0);
  which["q_scale.present"] = scales == 1 || scales == 3, which["k_scale.present"] = which["v_scale.present"] = scales >= 2;
  if (which["causal"] != 0) which["window_right"] = -1;
}

void generate_ragged(RaggedArgs& a, const Case& which, Random& random) {
  const i64 batch = a.q_indptr.shape[0] - 1, tokens = a.q.shape[0], keys = a.k.shape[0];
  const i64 queries_word = word(which, "queries", -1), keys_word = word(which, "keys", -1);
  i64 q = word(which, "spare", 1) && tokens > 0 ? 1 : 0, k = word(which, "spare", 1) && keys > 0 ? 2 : 0, bytes = 0;
  std::vector<char> asked(static_cast<size_t>(tokens)), seen(static_cast<size_t>(keys));
  for (i64 b = 0; b <= batch; ++b) {
    set_entry(a.q_indptr, b, q), set_entry(a.kv_indptr, b, k);
    if (a.mask_indptr.present()) set_entry(a.mask_indptr, b, bytes);
    if (b == batch) break;
    const i64 room_q = tokens - q, room_k = keys - k;
    const i64 n = std::min(room_q, count_of(queries_word, std::min(room_q, kQueries), random)), length = std::min(room_k, count_of(keys_word, std::min(room_k, kKeys), random));
    const RefRequest request{q, n, length, length};
    for (i64 i = 0; i < n; ++i) {
      asked[size_t(q + i)] = 1;
      const RefSpan span = ref_span(a, request, i);
      for (i64 j = span.first; j <= span.last; ++j) seen[size_t(k + j)] = 1;
    }
    q += n, k += length, bytes += ceil_div<i64>(n * length, 8);
  }
  for (i64 i = 0; a.mask.present() && i < a.mask.shape[0]; ++i) set_entry(a.mask, i, random.below(8) == 0 ? 0 : random.below(256));
  for (i64 t = 0; t < tokens; ++t)
    if (!asked[size_t(t)]) poison_row(a.q, t);
  for (i64 t = 0; t < keys; ++t)
    if (!seen[size_t(t)]) poison_row(a.k, t), poison_row(a.v, t);
  if (word(which, "proof", 0) != 0) return;
  for (const TensorView* scale : {&a.q_scale, &a.k_scale, &a.v_scale})
    for (i64 i = 0; scale->present() && i < scale->shape[0]; ++i)
      for (i64 j = 0; j < scale->shape[1]; ++j) {
        const i64 at[] = {i, j};
        store_element(*scale, at, 0.75 + 0.5 * random.uniform());
      }
}

}  // namespace quern::attention
