// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/sampling/filters/survivors.cuh",
     "sampling.mask",
     "rows=5 vocab=513 data=2 tensors=false top_k=5 top_p=1 min_p=0 temperature=1 ties=all",
     {{"equal values are cut where all are wanted",
       "    if (f.ties == FilterTies::all) here.end = i32(row.length);\n",
       "",
       {kWrongResult}}}},
    {"ops/sampling/filters/survivors.cuh",
     "sampling.mask",
     "rows=5 vocab=4099 data=2 tensors=false top_k=2048 top_p=0.9 min_p=0.0 order=top_k_first temperature=1 logits.dtype=f32 ties=all",
     {{"top-p's goal is that of a list which equal values overflow", " && f.ties == FilterTies::lowest_ids;", ";", {kWrongResult}}}},
    {"ops/sampling/filters/shares.cuh",
     "sampling.softmax",
     "vocab=513 logits.dtype=f32 temperatures.present=false temperature=0.6",
     {{"each thread divides by its own sum",
       "rounded_total(team_total(team, mass_of_thread(",
       "rounded_total((mass_of_thread(",
       {kWrongResult}}}},
    {"ops/sampling/filters/survivors.cuh",
     "sampling.sample",
     "vocab=513 data=0 tensors=false top_k=0 top_p=0.9 min_p=0 temperature=1",
     {{"the mass above a bin is forgotten",
       "share_of(p, found.total) - found.before}",
       "share_of(p, found.total)}",
       {kWrongResult, "UNINIT"}},
      {"masses that fill no bin",
       "m.mantissa >> 18 & (kBinsOfPower - 1)",
       "m.mantissa >> 17 & (kBinsOfPower - 1)",
       {kWrongResult, "UNINIT"}}}},
}};

}  // namespace quern::planted
