// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/elementwise/map_row/kernel.cuh",
     "elementwise.add",
     "tokens=3 hidden=1025 x.pad=8 y.pad=0",
     {{"the second input read by the first one's stride", "row * p.y_stride", "row * p.x_stride", {"GLOBAL-OOB", kWrongResult}}}},
    {"ops/elementwise/map_row/kernel.cuh",
     "elementwise.diag_scale",
     "tokens=64 hidden=96 x.pad=0 out.pad=0",
     {{"rows that are taken as one have one factor", "if (p.row_columns == 0) return row;", "return row;", {kWrongResult}}}},
}};

}  // namespace quern::planted
