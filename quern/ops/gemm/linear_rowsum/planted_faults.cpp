// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/gemm/linear_rowsum/kernel.cuh",
     "gemm.linear_rowsum",
     "m=3 n=300 k=20000 bias.present=true",
     {{"each chunk adds the bias", "if (chunk == 0) sum[0]", "sum[0]", {kWrongResult}}}},
}};

}  // namespace quern::planted
