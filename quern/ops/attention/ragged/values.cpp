// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/attention/ragged/values.h"

#include <algorithm>
#include <vector>

#include "quern/ops/attention/case_values.h"
#include "quern/ops/attention/ragged/ref.h"

namespace quern::attention {

void derive_ragged(Case& which) {
  const i64 batch = case_word(which, "batch", 1), queries = case_word(which, "queries", -1), keys = case_word(which, "keys", -1);
  which["heads_q"] = double(case_word(which, "heads_kv", 1) * case_word(which, "gqa", 1));
  const i64 most_queries = queries >= 0 ? queries : kCaseQueries, most_keys = keys >= 0 ? keys : kCaseKeys,
            spare = case_word(which, "spare", 1) ? kSpareTokens : 0;
  if (!which.contains("tokens")) which["tokens"] = double(batch * most_queries + spare);
  if (!which.contains("tokens_kv")) which["tokens_kv"] = double(batch * most_keys + spare);
  if (case_word(which, "head_dim_v", 0) == 0) which["head_dim_v"] = which["head_dim"];
  derive_options(which, "k", "v", batch * most_queries * most_keys);
}

void generate_ragged(RaggedArgs& a, const Case& which, Random& random) {
  const i64 batch = a.q_indptr.shape[0] - 1, tokens = a.q.shape[0], keys = a.k.shape[0];
  const i64 queries_word = case_word(which, "queries", -1), keys_word = case_word(which, "keys", -1), spare = case_word(which, "spare", 1);
  i64 q = spare && tokens > 0 ? 1 : 0, k = spare && keys > 0 ? 2 : 0, bytes = 0;
  std::vector<char> asked(static_cast<size_t>(tokens)), seen(static_cast<size_t>(keys));
  for (i64 b = 0; b <= batch; ++b) {
    set_entry(a.q_indptr, b, q), set_entry(a.kv_indptr, b, k);
    if (a.mask_indptr.present()) set_entry(a.mask_indptr, b, bytes);
    if (b == batch) break;
    const i64 room_q = tokens - q, room_k = keys - k;
    const i64 n = std::min(room_q, drawn_count(queries_word, std::min(room_q, kCaseQueries), random));
    const i64 length = std::min(room_k, drawn_count(keys_word, std::min(room_k, kCaseKeys), random));
    const RefRequest request{q, n, length, length};
    for (i64 i = 0; i < n; ++i) {
      asked[size_t(q + i)] = 1;
      const RefSpan span = ref_span(a, request, i);
      for (i64 j = span.first; j <= span.last; ++j) seen[size_t(k + j)] = 1;
    }
    q += n, k += length, bytes += ceil_div<i64>(n * length, 8);
  }
  fill_mask(a.mask, random);
  for (i64 t = 0; t < tokens; ++t)
    if (!asked[size_t(t)]) poison_rows(a.q, {t});
  for (i64 t = 0; t < keys; ++t)
    if (!seen[size_t(t)]) poison_rows(a.k, {t}), poison_rows(a.v, {t});
  fill_scales(which, {&a.q_scale, &a.k_scale, &a.v_scale}, random);
}

}  // namespace quern::attention
