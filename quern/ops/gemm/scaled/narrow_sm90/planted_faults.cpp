// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/gemm/scaled/narrow_sm90/kernel.cuh",
     "gemm.scaled",
     "variant=narrow_sm90 m=70 n=136 k=2600 recipe=0",
     {{"scales of the first half of K for both", "part.first_step, part.steps);", "0, part.steps);", {kWrongResult}},
      {"the first 64 rows' products for all rows", "row = first_row_of<C.product.block>(group),", "row = 0,", {kWrongResult}}}},
    // Two warpgroups beside each other: 56 columns each, 72 each
    {"ops/gemm/scaled/narrow_sm90/kernel.cuh",
     "gemm.scaled",
     "variant=narrow_sm90 m=40 n=14784 k=200 recipe=0",
     {{"the first half's columns for both", "column = first_column_of<C.product.block>(group)", "column = 0", {kWrongResult}}}},
}};

}  // namespace quern::planted
