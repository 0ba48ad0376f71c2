// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/attention/requests.cuh",
     "attention.ragged",
     "variant=portable batch=2 queries=20 keys=70 head_dim=64 causal=1",
     {{"positions counted from the first key", "keys.length - queries.count + query;", "query;", {kWrongResult}}}},
    // beyond=1: lengths break their contract, and the op promises what then becomes of their requests
    {"ops/attention/requests.cuh",
     "attention.paged",
     "sizes=4 head_dim=64 beyond=1 out_lse.present=false",
     {{"a length beyond the table", "keys.end = i32(min_of<i64>(keys.length, most));", "keys.end = keys.length;", {"GLOBAL-OOB"}}}},
}};

}  // namespace quern::planted
