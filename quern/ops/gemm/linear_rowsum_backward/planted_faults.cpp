// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/gemm/linear_rowsum_backward/kernel.cuh",
     "gemm.linear_rowsum_backward",
     "m=65 n=257 k=96 da.present=true db.present=true",
     {{"the first row's factor for all", "+ row * p.scale_stride, scale)", "+ 0 * row, scale)", {kWrongResult}}}},
}};

}  // namespace quern::planted
