// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"bricks/random/philox.cuh",
     "sampling.sample",
     "vocab=513 data=0 tensors=false",
     {{"a round is missing", "round < 10", "round < 9", {kWrongResult}},
      {"the high half of the seed is not read", "u32(seed), u32(seed >> 32)", "u32(seed), 0u", {kWrongResult}}}},
}};

}  // namespace quern::planted
