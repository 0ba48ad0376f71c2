// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Kernels that trust indices of which their op promises what becomes where they break the contract.
#pragma once
#include "planted_faults.h"

namespace quern::planted {

inline const std::vector<FaultyCase>& index_faults() {
  static const std::vector<FaultyCase> all = {
      {"bricks/paged/place.cuh",
       "kv_cache.append_paged",
       "tokens=33 batch=3 heads_kv=1 beyond=1",
       {{"a negative position", " || position < 0) return", ") return", {kWrongResult, "RACE"}},
        {"a request that is the batch", "request >= p.batch", "request > p.batch", {"GLOBAL-OOB"}},
        {"a page beyond the cache", "page >= 0 && page < p.pages ?", "page >= 0 ?", {"GLOBAL-OOB"}},
        {"a position one page beyond", "if (slot >= p.max_pages)", "if (slot > p.max_pages)", {"GLOBAL-OOB", "RACE"}}}},
      {"bricks/paged/place.cuh",
       "kv_cache.append_paged",
       "tokens=33 batch=3 heads_kv=1 csr=true beyond=1",
       {{"a begin below the entries", "if (at < 0 || ", "if (", {"GLOBAL-OOB"}},
        {"a position beyond the request's end", " || at >= ptx::ld_global<i32>(p.page_indptr + request + 1)", "", {"RACE", kWrongResult}}}},
      {"bricks/paged/place.cuh",
       "kv_cache.append_paged",
       "tokens=33 batch=3 heads_kv=1 slots=true beyond=1",
       {{"a slot beyond the cache", " || i64(slot) >= p.pages * p.page_size", "", {"GLOBAL-OOB"}}}},
      {"ops/attention/requests.cuh",
       "attention.paged",
       "sizes=4 head_dim=64 beyond=1 out_lse.present=false",
       {{"a length beyond the table", "keys.end = i32(min_of<i64>(keys.length, most));", "keys.end = keys.length;", {"GLOBAL-OOB"}}}},
  };
  return all;
}

}  // namespace quern::planted
