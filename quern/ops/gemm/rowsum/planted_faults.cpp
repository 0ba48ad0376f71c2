// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/gemm/rowsum/column_sums.cuh",
     "gemm.linear_rowsum",
     "m=3 n=300 k=320 bias.present=true",
     {{"no barrier before the warps are added", "  ptx::sync_block();\n  const i64 column", "  const i64 column", {"RACE", "UNINIT"}},
      {"rows past the last", "if (r >= p.rows || first", "if (first", {"GLOBAL-OOB", "RACE", kWrongResult}},
      {"the last columns' block stores past them", "< kColumns && column < p.columns", "< kColumns", {"GLOBAL-OOB", "RACE"}},
      {"all parts in one place", "part * p.part_stride + column", "column", {"RACE", "UNINIT"}}}},
}};

}  // namespace quern::planted
