// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/kv_cache/batch_indices_positions/kernel.cuh",
     "kv_cache.batch_indices_positions",
     "nnz=33 padded=1",
     {{"the bisection goes one request too far", "high = p.batch;", "high = p.batch + 2;", {"GLOBAL-OOB", kWrongResult}},
      {"tokens behind the last request belong to it", "if (token < end) position", "if (request >= 0) position", {kWrongResult}},
      {"positions without the tokens that the cache holds", "- (end - token)", "- (end - token) + 1", {kWrongResult}},
      {"threads past the last token store", "token < p.tokens;", "token < p.tokens + 1;", {"GLOBAL-OOB"}}}},
}};

}  // namespace quern::planted
