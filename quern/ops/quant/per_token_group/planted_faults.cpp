// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/quant/per_token_group/kernel.cuh",
     "quant.per_token_group",
     "m=5 k=200 group_size=32 q.dtype=i8",
     {{"the maximum of four groups", "warp_max_nan<fp8_group_lanes(C.group)>", "warp_max_nan<kFp8GroupLanes>", {kWrongResult}},
      {"columns past the end loaded",
       "if (row < p.m && column + a * part.kStep < p.k) part.access[a]",
       "if (row < p.m) part.access[a]",
       {"GLOBAL-OOB"}}}},
}};

}  // namespace quern::planted
