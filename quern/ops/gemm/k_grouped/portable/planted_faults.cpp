// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/gemm/k_grouped/portable/mma_ring.cuh",
     "gemm.k_grouped",
     "variant=portable m=70 n=77 k=300 groups=3 bits8=0 a.transposed=1 b.transposed=1 sizes=0 spread=0 poison=2 c.present=1",
     {{"a column of the next group",
       "own.k = own.split_k = columns.count;",
       "own.k = own.split_k = columns.count + 1;",
       {"GLOBAL-OOB", kWrongResult}},
      {"results of all groups in one place", "static_cast<u8*>(p.gemm.out) + group * p.out_group", "p.gemm.out", {"RACE", kWrongResult}},
      {"c of the first group for all", "static_cast<const u8*>(p.gemm.c.data) + group * p.c_group", "p.gemm.c.data", {kWrongResult}}}},
    {"ops/gemm/k_grouped/portable/scaled_mma_ring.cuh",
     "gemm.k_grouped",
     "variant=portable m=20 n=24 k=400 groups=3 bits8=1 sizes=0 spread=0 poison=1",
     {{"scales of a from the first column on", "scale * p.gemm.scales_a.column_stride", "0", {kWrongResult}}}},
}};

}  // namespace quern::planted
