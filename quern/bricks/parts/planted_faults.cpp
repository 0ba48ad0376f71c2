// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"bricks/parts/sum_parts.cuh",
     "norm.layer_norm_backward",
     "tokens=3 hidden=96",
     {{"both sums from the first one's parts", "i64(blockIdx.y) * p.second", "i64(0)", {kWrongResult}}}},
    {"bricks/parts/sum_parts.cuh",
     "norm.rms_norm_backward",
     "tokens=3 hidden=96",
     {{"no barrier before the lanes are added", "  ptx::sync_block();\n  const", "  const", {"RACE", "UNINIT"}},
      {"a part past the last", "b < p.count", "b <= p.count", {"GLOBAL-OOB", "UNINIT"}}}},
}};

}  // namespace quern::planted
