// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/activation/activate_row_backward/kernel.cuh",
     "activation.clamped_swiglu_backward",
     "tokens=3 intermediate=320 x.pad=8 dx.pad=0 interleaved=true limit=1",
     {{"gradients of pairs stored as halves",
       "pairs[2 * j / kVector][2 * j % kVector] = gate[j];",
       "pairs[0][j] = gate[j];",
       {"UNINIT", kWrongResult}},
      {"dx stored by the rows of x", "row * p.row.out_stride;", "row * p.row.x_stride;", {"GLOBAL-OOB", "UNINIT", kWrongResult}}}},
    {"ops/activation/activate_row_backward/slopes.cuh",
     "activation.clamped_swiglu_backward",
     "tokens=3 intermediate=320 limit=1 wide=1",
     {{"gates beyond the limit have a slope", "gate > limit ? f32(0.f) : dy", "dy", {kWrongResult}},
      {"ups are cut on one side alone", "ptx::fabs(up) > limit", "up > limit", {kWrongResult}}}},
    {"ops/activation/activate_row_backward/slopes.cuh",
     "activation.silu_and_mul_backward",
     "tokens=3 intermediate=320 x.dtype=f32 wide=1",
     {{"the sigmoid of |x|",
       "return negative ? Sigmoid{smaller, larger} : Sigmoid{larger, smaller};",
       "return Sigmoid{larger, smaller};",
       {kWrongResult}},
      {"1 - s as a difference",
       "larger = ptx::rcp_approx(f32(1.f) + e), smaller = e * larger;",
       "larger = ptx::rcp_approx(f32(1.f) + e), smaller = f32(1.f) - larger;",
       {kWrongResult}}}},
}};

}  // namespace quern::planted
