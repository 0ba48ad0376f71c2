// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/rope/rope_quantise_fp8/kernel.cuh",
     "rope.rope_quantise_fp8",
     "tokens=5 heads_kv=2 scales=2 k_nope_dim=9 q_nope_dim=7",
     {{"times the scale", "fp8_inverse(ptx::ld_global<f32>(heads.scale))", "ptx::ld_global<f32>(heads.scale)", {kWrongResult}},
      {"what is not rotated stored past its end",
       "if (first + a * C.head.vector < heads.nope_dim) store_quantised",
       "store_quantised",
       {"GLOBAL-OOB", "RACE", "UNINIT"}},
      {"heads of k counted from those of q", "token, head - p.heads_q, lane", "token, head, lane", {"GLOBAL-OOB", "RACE", kWrongResult}}}},
    {"ops/rope/rope_quantise_fp8/kernel.cuh",
     "rope.rope_quantise_fp8",
     "tokens=3",
     {{"units of what is not rotated left out", "first += C.head.lanes * kUnit", "first += 32 * kUnit", {kWrongResult}}}},
}};

}  // namespace quern::planted
