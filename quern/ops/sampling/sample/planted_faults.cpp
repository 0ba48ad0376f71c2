// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/sampling/sample/kernel.cuh",
     "sampling.sample",
     "vocab=513 data=0 tensors=false",
     {{"every row draws by the first seed", "ptx::ld_global<i64>(p.seeds + row)", "ptx::ld_global<i64>(p.seeds)", {kWrongResult}},
      {"the random number reaches 1",
       "scaled_by_bits(bits, total)",
       "scaled_by_bits(bits, total) + U128{~u64(0), 0xfffffff}",
       {kWrongResult}}}},
}};

}  // namespace quern::planted
