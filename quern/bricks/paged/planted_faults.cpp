// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"bricks/paged/place.cuh",
     "kv_cache.append_paged",
     "tokens=4 heads_kv=3",
     {{"the page table's row stride doubled", "request * p.page_table_stride", "2 * request * p.page_table_stride", {"GLOBAL-OOB"}}}},
    {"bricks/paged/place.cuh",
     "kv_cache.append_paged",
     "tokens=5 batch=4 heads_kv=1 head_dim=64 page_size=1 --seed 70",
     {{"a skipped token's request used",
       "    if (request < 0 || request >= p.batch || position < 0) return {-1, 0};\n",
       "",
       {"GLOBAL-OOB"}}}},
    {"bricks/paged/place.cuh",
     "kv_cache.append_paged",
     "tokens=33 slots=1 heads_kv=3",
     {{"a negative slot stored to", "if (slot < 0 || i64(slot)", "if (i64(slot)", {"GLOBAL-OOB"}}}},
    // beyond=1: indices break their contract, and the op promises what then becomes of their tokens
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
    // Boxes of 8 rows, three a page
    {"bricks/paged/boxes.cuh",
     "attention.paged",
     "variant=prefill_sm90 batch=2 heads_kv=1 queries=17 capacity=300 length=300 head_dim=16 page_size=24 fp8=0 k_cache.swap=false v_cache.pad=0 q.shift=0",
     {{"a page behind the last that some row sees", "if (token >= end || token", "if (token", {"FAULT", "GLOBAL-OOB"}}},
     1},
}};

static const Asan asan{{
    {"bricks/paged/place.cuh",
     "kv_cache.append_paged",
     "tokens=4 heads_kv=3",
     {{"position taken modulo a page size of 0", "= position / p.page_size;", "= position / (p.page_size / 0x10000);", {"UNDEFINED"}}}},
}};

}  // namespace quern::planted
