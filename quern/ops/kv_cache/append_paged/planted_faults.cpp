// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/kv_cache/append_paged/kernel.cuh",
     "kv_cache.append_paged",
     "tokens=4 heads_kv=3",
     {{"threads without work load", "    if (int(threadIdx.x) < work) first = load", "    first = load", {"GLOBAL-OOB"}},
      {"every block takes the tokens behind its own", "token += gridDim.x", "token += 1", {"RACE"}},
      {"rows stored into k", "(p.k_cache + to.page", "((char*)p.k + 0 * to.page", {"WRITE-TO-INPUT"}}}},
    {"ops/kv_cache/append_paged/kernel.cuh",
     "kv_cache.append_paged",
     "tokens=33 slots=1 fp8=1 scales=2 heads_kv=3",
     {{"the scale left out", "if (scale != nullptr)", "if (scale == nullptr)", {kWrongResult}},
      {"all heads by the scale of the first", "p.k_scale + head", "p.k_scale + 0 * head", {kWrongResult}},
      {"times the scale", "ptx::div(x[i], by)", "x[i] * by", {kWrongResult}},
      {"bytes of the cache counted as those of the rows",
       "RowElement<C.cache_dtype>::type));",
       "RowElement<C.dtype>::type));",
       {"GLOBAL-OOB", "RACE", kWrongResult}}}},
}};

static const Asan asan{{
    {"ops/kv_cache/append_paged/kernel.cuh",
     "kv_cache.append_paged",
     "tokens=4 heads_kv=3",
     {{"rows stored into k", "(p.k_cache + to.page", "((char*)p.k + 0 * to.page", {"WRITE-TO-INPUT", "GLOBAL-OOB"}}}},
}};

}  // namespace quern::planted
