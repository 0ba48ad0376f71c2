// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/quant/segment_packbits/kernel.cuh",
     "quant.segment_packbits",
     "bits=1000 segments=300",
     {{"elements of the next segment", "element_bound<C.indptr_dtype>(p, segment + 1) - begin);", "8);", {"GLOBAL-OOB", kWrongResult}},
      {"the sum of segments before is lost", "before += total;", "", {kWrongResult}}}},
}};

}  // namespace quern::planted
