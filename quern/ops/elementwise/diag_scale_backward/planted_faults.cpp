// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/elementwise/diag_scale_backward/kernel.cuh",
     "elementwise.diag_scale_backward",
     "tokens=3 hidden=20000 ddiagonal.present=true dx.present=true",
     {{"all chunks' sums in one place", "chunk * p.part_stride + row", "row", {"RACE", "UNINIT"}}}},
}};

}  // namespace quern::planted
