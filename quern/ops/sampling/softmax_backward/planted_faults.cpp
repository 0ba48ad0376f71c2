// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/sampling/softmax_backward/kernel.cuh",
     "sampling.softmax_backward",
     "rows=5 vocab=20000 temperatures.present=false temperature=0.6",
     {{"chunks beyond the first 32 lanes left out", "i < p.chunks; i += 32)\n", "i < min_of<i64>(p.chunks, 4); i += 32)\n", {kWrongResult}},
      {"all chunks' sums in one place", "row * p.chunks + chunk, dot", "row * p.chunks, dot", {"RACE", "UNINIT"}},
      {"the temperature is left out", "inverse = inverse_temperature(p, row);\n      },", "inverse = 1.f;\n      },", {kWrongResult}}}},
    {"ops/sampling/softmax_backward/kernel.cuh",
     "sampling.softmax_backward",
     "rows=23 vocab=96 temperatures.present=true",
     {{"greedy rows have a gradient", "temperature < f32(kGreedyTemperature) ? f32(0.f) : ", "", {kWrongResult}}}},
}};

}  // namespace quern::planted
