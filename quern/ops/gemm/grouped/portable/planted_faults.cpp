// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/gemm/grouped/portable/mma_ring.cuh",
     "gemm.grouped_contiguous",
     "variant=portable m=150 groups=3 n=24 k=40 bits8=0 layout=2 spread=0",
     {{"b of the first group for all",
       "static_cast<const dtype_t<C.dtype>*>(p.gemm.b) + tile.group * p.b_group",
       "p.gemm.b",
       {kWrongResult}},
      {"a tile that reaches into the rows of the next group", "own.m = tile.rows;", "own.m = p.rows.rows - tile.begin;", {"RACE"}}}},
    {"ops/gemm/grouped/portable/scaled_mma_ring.cuh",
     "gemm.grouped_masked",
     "variant=portable max_m=40 groups=3 n=24 k=140 bits8=1 spread=0",
     {{"scales of the first group for all", "+ tile.group * p.scales_b_group", "", {kWrongResult}},
      {"rows that are masked", "own.m = tile.rows;", "own.m = p.rows.rows;", {kWrongResult}}}},
}};

}  // namespace quern::planted
