// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/activation/activate_row/kernel.cuh",
     "activation.silu_and_mul",
     "tokens=3 intermediate=1000",
     {{"a row of the output written by two blocks", "row * p.out_stride", "row / 2 * p.out_stride", {"RACE"}}}},
    {"ops/activation/activate_row/function.cuh",
     "activation.clamped_swiglu",
     "tokens=3 intermediate=1000 limit=1",
     {{"pairs taken as halves of an access", "const int g = 2 * j, u = 2 * j + 1;", "const int g = j, u = kVector + j;", {kWrongResult}},
      {"up is not cut from below", "ptx::fmax_nan(smaller_nan(up, limit), -limit)", "smaller_nan(up, limit)", {kWrongResult}},
      {"gate is cut from below too",
       "gate = smaller_nan(gate, limit);",
       "gate = ptx::fmax_nan(smaller_nan(gate, limit), -limit);",
       {kWrongResult}}}},
}};

static const Asan asan{{
    {"ops/activation/activate_row/function.cuh",
     "activation.silu_and_mul",
     "tokens=3 intermediate=1000",
     {{"a value past the access's", "f32(0.f) : second[j];", "f32(0.f) : second[j + 1];", {"INDEX-OOB", "LOCAL-OOB"}}}},
}};

}  // namespace quern::planted
