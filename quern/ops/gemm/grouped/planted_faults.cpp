// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/gemm/grouped/spans.cuh",
     "gemm.grouped_contiguous",
     "variant=portable m=150 groups=3 n=24 k=40 bits8=0 layout=0 spread=2 alignment=16",
     {{"rows of group -1 looked for", "if (group < 0 || group >= p.groups) continue;", "if (group >= p.groups) continue;", {"GLOBAL-OOB"}},
      {"no barrier behind the empty spans", "ptx::sync_block();", "", {"RACE", "UNINIT"}}}},
    {"ops/gemm/grouped/spans.cuh",
     "gemm.grouped_contiguous",
     "variant=portable m=150 groups=3 n=24 k=40 bits8=0 layout=0 spread=0 alignment=16",
     {{"rows of no group behind the last one taken",
       "end_of_group(group_of_row, group, i32(row), i32(min_of<i64>(next, p.m)))",
       "i32(min_of<i64>(next, p.m))",
       {kWrongResult}}}},
}};

}  // namespace quern::planted
