// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/kv_cache/copy_pages/kernel.cuh",
     "kv_cache.copy_pages",
     "copies=18 heads_kv=3 page_size=3",
     {{"a skipped copy reads", "src >= 0 && src < p.pages && dst", "src < p.pages && dst", {"GLOBAL-OOB"}},
      {"v stored into k",
       "store_packed<u8, C.bytes>(address(p.v, dst, access), held.v)",
       "store_packed<u8, C.bytes>(address(p.k, dst, access), held.v)",
       {"RACE", kWrongResult}},
      {"slots and heads exchanged", "outer * cache.outer_stride", "outer * cache.inner_stride", {"RACE", kWrongResult}}}},
}};

}  // namespace quern::planted
