// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/norm/norm_form/kernel.cuh",
     "norm.layer_norm",
     "tokens=3 hidden=96",
     {{"squares of what is not centred", "? v[j] - row.mean :", "? v[j] :", {kWrongResult}},
      {"zeros past the row's end are centred too", "const f32 d = column + j < p.hidden ?", "const f32 d = true ?", {kWrongResult}}}},
    {"ops/norm/norm_form/kernel.cuh",
     "norm.rms_norm_heads",
     "tokens=4 heads=5 x.pad=8",
     {{"a head in the place of its neighbour",
       "(row - token * p.heads) * head_stride",
       "(row - token * p.heads + 1) * head_stride",
       {"GLOBAL-OOB", "RACE", "UNINIT"}}}},
}};

}  // namespace quern::planted
