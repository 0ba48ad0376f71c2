// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/elementwise/gather_rows/kernel.cuh",
     "elementwise.gather_rows",
     "tokens=64 beyond=1",
     {{"ids beyond the table are read", "id >= 0 && id < p.rows", "id >= 0", {"GLOBAL-OOB"}},
      {"negative ids take the first row", "if (id >= 0 && id < p.rows) held", "if (id < p.rows) held", {"GLOBAL-OOB", kWrongResult}}}},
}};

}  // namespace quern::planted
